"""Record batches of the metadata log, decoded as far as they are known.

A newer Kafka may write records that have no layout here, so an unknown one is kept with its number.
"""

import struct

from brokers.shadow.source import UNKNOWN_RECORD, Batch
from brokers.wire.metadata.record_frame import CATALOGUE, Record, decode_record
from brokers.wire.plain import Fault, Reader
from brokers.wire.record_batch import (
    KRAFT_VERSION,
    KRAFT_VOTERS,
    LEADER_CHANGE,
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    RecordBatch,
)
from brokers.wire.schema import MessageError

_CONTROL_NAMES = {
    LEADER_CHANGE: "LeaderChangeMessage",
    SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    KRAFT_VERSION: "KRaftVersionRecord",
    KRAFT_VOTERS: "VotersRecord",
}
_CONTROL_KEY = struct.Struct(">hh")
_VERSION_BYTES = 2
_NO_KEY = -1


def decoded(batch: RecordBatch) -> Batch:
    """Decode the records of a batch. Each that cannot be decoded becomes an ``UnknownRecord``."""
    if batch.control:
        records = tuple(_control_record(key, value) for key, value in batch.records)
    else:
        records = tuple(_record(value) for _, value in batch.records)
    return Batch(batch.base_offset, batch.leader_epoch, batch.timestamp_ms, batch.control, records, batch.size)


def _record(value: bytes) -> Record:
    try:
        return decode_record(value)
    except MessageError:
        return _unknown(*_frame(value), value)


def _frame(value: bytes) -> tuple[int, int]:
    """Read the API key and the version of a record that is not known."""
    reader = Reader(value)
    try:
        _, key, version = reader.uvarint(), reader.uvarint(), reader.uvarint()
    except Fault:
        return _NO_KEY, _NO_KEY
    return key, version


def _control_record(key: bytes | None, value: bytes) -> Record:
    kind = _CONTROL_KEY.unpack(key)[1] if key is not None and len(key) == _CONTROL_KEY.size else _NO_KEY
    version = int.from_bytes(value[:_VERSION_BYTES])
    name = _CONTROL_NAMES.get(kind)
    if name is None:
        return _unknown(kind, version, value)
    try:
        return Record(name, version, CATALOGUE.decode_message(name, version, value))
    except MessageError:
        return _unknown(kind, version, value)


def _unknown(key: int, version: int, value: bytes) -> Record:
    return Record(UNKNOWN_RECORD, version, {"ApiKey": key, "Bytes": len(value)})
