"""Entries of the metadata log as record batches. The same entry at the same offset gives the same bytes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from brokers.gateways.kraft.messages import decode_message, encode_message
from brokers.gateways.kraft.metadata.translate import Entry, LeaderChange
from brokers.wire.metadata.record_frame import Record, decode_record, encode_record
from brokers.wire.record_batch import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    KeyAndValue,
    RecordBatch,
    control_key,
    decode_batches,
    encode_batch,
)
from state.chunks import chunks

# KafkaRaftClient.MAX_BATCH_SIZE_BYTES.
BATCH_BYTES_MAX = 8 * 1024 * 1024
# The most bytes that a record has besides its value: lengths, attributes, time, offset, key, headers.
_AROUND_BYTES = 24
# The control records that are part of the metadata.
_VOTER_RECORDS = {"KRaftVersionRecord": KRAFT_VERSION, "VotersRecord": KRAFT_VOTERS}
_NAMES = {control_key(kind): name for name, kind in _VOTER_RECORDS.items()}


class Encoded(NamedTuple):
    """Whole batches, and the offset after their last record."""

    data: bytes
    end_offset: int


def encode_entry(entry: Entry, base_offset: int) -> Encoded:
    """Write what one event adds: the control batch of a new leader and the voters, then all its records in one batch.

    Records that need more than ``BATCH_BYTES_MAX`` go into several batches, enclosed by the two records of a
    transaction, so that brokers apply them as a whole (KIP-868).
    """
    out, offset = bytearray(), base_offset
    for is_control, records in _batches(entry):
        out += encode_batch(offset, entry.quorum_epoch, entry.time_ms, records, control=is_control)
        offset += len(records)
    return Encoded(bytes(out), offset)


def _batches(entry: Entry) -> Iterator[tuple[bool, list[KeyAndValue]]]:
    control = [] if entry.leader_change is None else [_leader_change(entry.leader_change)]
    if control := [*control, *map(voter_record, entry.voters)]:
        yield True, control
    parts = list(portions(entry.records))
    if len(parts) > 1:
        begin, end = encode_record("BeginTransactionRecord", 0, {}), encode_record("EndTransactionRecord", 0, {})
        parts = [[begin, *parts[0]], *parts[1:-1], [*parts[-1], end]]
    for part in parts:
        yield False, [(None, value) for value in part]


def portions(values: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Divide records into portions that fit a batch. A record that is larger than that gets a batch of its own."""
    return chunks(((value, len(value) + _AROUND_BYTES) for value in values), BATCH_BYTES_MAX)


def control_record(kind: int, name: str, **values: object) -> KeyAndValue:
    """Write a control record. Its value is a message of version 0 that repeats its version."""
    return control_key(kind), encode_message(name, 0, {"Version": 0, **values})


def voter_record(record: Record) -> KeyAndValue:
    """Write a record of the quorum's voters as a control record."""
    return control_record(_VOTER_RECORDS[record.name], record.name, **record.values)


def _leader_change(change: LeaderChange) -> KeyAndValue:
    voters = [{"VoterId": voter} for voter in change.voters]
    return control_record(
        LEADER_CHANGE, "LeaderChangeMessage", LeaderId=change.voter, Voters=voters, GrantingVoters=voters
    )


def records_in(data: bytes) -> Iterator[Record]:
    """Read the metadata records of whole batches, and the voters in control records. Raises ``WireError``."""
    for batch in decode_batches(data):
        yield from records_of_batch(batch)


def records_of_batch(batch: RecordBatch) -> Iterator[Record]:
    """Read the metadata records of a batch, or the voters in a control batch. Raises ``WireError``."""
    if not batch.control:
        for _, value in batch.records:
            yield decode_record(value)
        return
    for key, value in batch.records:
        if key in _NAMES:
            yield Record(_NAMES[key], 0, decode_message(_NAMES[key], 0, value))
