"""The two records of partitions, written without layouts, because there may be hundreds of thousands at once.

``encode_record`` gives the same bytes for the same values
(``tests/brokers/gateways/kraft/metadata/test_partition_bytes.py``).

Kafka writes version 2 from a metadata version on. Here only records with eligible leader replicas have it, so that a
log without them is the same in each release.
"""

import struct
from functools import lru_cache
from typing import Any

from brokers.gateways.kraft.metadata.partition_table import Ids, PartitionState
from brokers.wire.metadata.record_frame import FRAME_VERSION
from brokers.wire.plain import Fault, uuid_bytes, write_uvarint
from brokers.wire.schema import MessageError

PARTITION_KEY, CHANGE_KEY = 3, 5
# Without eligible leader replicas, and with them.
RECORD_VERSION, ELIGIBLE_RECORD_VERSION = 1, 2
_PARTITION_FRAMES, _CHANGE_FRAMES = (
    [bytes((FRAME_VERSION, key, version)) for version in (RECORD_VERSION, ELIGIBLE_RECORD_VERSION)]
    for key in (PARTITION_KEY, CHANGE_KEY)
)
# The frame, the partition's number and the topic's id.
_PLACE = ">3si16s"
_PLACE_BYTES = struct.Struct(_PLACE)
_INT = struct.Struct(">i")
_BYTE = struct.Struct(">b")


def id_bytes(topic_id: str) -> bytes:
    """Return the 16 bytes of a topic's id. Raises ``MessageError``."""
    try:
        return uuid_bytes(topic_id)
    except Fault as fault:
        raise MessageError(f"a topic's id: {fault.what}") from fault


def partition_record(topic_id: bytes, number: int, state: PartitionState) -> bytes:
    """Write a whole partition (PartitionRecord). Raises ``MessageError``."""
    fields: list[bytes] = []
    try:
        if state.leader_recovery_state:
            fields.append(_tagged(0, _BYTE.pack(state.leader_recovery_state)))
        if state.elr:
            fields.append(_tagged_ids(1, state.elr))
        if state.last_known_elr:
            fields.append(_tagged_ids(2, state.last_known_elr))
        frame = _PARTITION_FRAMES[bool(state.elr or state.last_known_elr)]
        replicas, isr, removing, adding = state.replicas, state.isr, state.removing_replicas, state.adding_replicas
        sizes = len(replicas), len(isr), len(removing), len(adding), len(state.directories)
        layout, of_replicas, of_isr, of_removing, of_adding, of_directories = _layout(*sizes)
        lists = of_replicas, *replicas, of_isr, *isr, of_removing, *removing, of_adding, *adding
        leader = state.leader, state.leader_epoch, state.partition_epoch
        directories = map(_directory, state.directories)
        record: bytes = layout.pack(frame, number, topic_id, *lists, *leader, of_directories, *directories, len(fields))
        return b"".join((record, *fields)) if fields else record
    except (struct.error, Fault) as error:
        raise MessageError(f"PartitionRecord of partition {number}: {error}") from error


def change_record(topic_id: bytes, number: int, held: PartitionState, wanted: PartitionState) -> bytes:
    """Write what differs between two states of a partition (PartitionChangeRecord). Raises ``MessageError``.

    The leader is written even if only its epoch differs.
    """
    fields: list[bytes] = []
    try:
        if wanted.isr != held.isr:
            fields.append(_tagged_ids(0, wanted.isr))
        if wanted.leader_epoch != held.leader_epoch:
            fields.append(_tagged_leader(wanted.leader))
        if wanted.replicas != held.replicas:
            fields.append(_tagged_ids(2, wanted.replicas))
        if wanted.removing_replicas != held.removing_replicas:
            fields.append(_tagged_ids(3, wanted.removing_replicas))
        if wanted.adding_replicas != held.adding_replicas:
            fields.append(_tagged_ids(4, wanted.adding_replicas))
        if wanted.leader_recovery_state != held.leader_recovery_state:
            fields.append(_tagged(5, _BYTE.pack(wanted.leader_recovery_state)))
        former = len(fields)
        if wanted.elr != held.elr:
            fields.append(_tagged_ids(6, wanted.elr))
        if wanted.last_known_elr != held.last_known_elr:
            fields.append(_tagged_ids(7, wanted.last_known_elr))
        frame = _CHANGE_FRAMES[len(fields) > former]
        if wanted.directories != held.directories:
            fields.append(_tagged(8, _directories(wanted.directories)))
        place = _PLACE_BYTES.pack(frame, number, topic_id)
    except (struct.error, Fault) as error:
        raise MessageError(f"PartitionChangeRecord of partition {number}: {error}") from error
    return b"".join((place, bytes((len(fields),)), *fields))


@lru_cache
def _layout(*sizes: int) -> tuple[Any, ...]:
    """Return the layout of a whole partition with five lists of these sizes, and the length before each list."""
    lengths = [_length(size + 1) for size in sizes]
    *ids, directories = zip(lengths, sizes, strict=True)
    form = "".join(f"{len(length)}s{size}i" for length, size in ids)
    return struct.Struct(f"{_PLACE}{form}iii{len(directories[0])}s{'16s' * directories[1]}B"), *lengths


# Kafka's brokers have few log directories.
@lru_cache(4_096)
def _directory(directory: str) -> bytes:
    return uuid_bytes(directory)


def _ids(ids: Ids) -> bytes:
    layout, length = _layout_of_ids(len(ids))
    return layout.pack(length, *ids)


@lru_cache
def _layout_of_ids(size: int) -> tuple[struct.Struct, bytes]:
    length = _length(size + 1)
    return struct.Struct(f">{len(length)}s{size}i"), length


def _directories(directories: tuple[str, ...]) -> bytes:
    return _length(len(directories) + 1) + b"".join(map(_directory, directories))


def _tagged_ids(tag: int, ids: Ids) -> bytes:
    return _tagged(tag, _ids(ids))


def _tagged_leader(leader: int) -> bytes:
    return _tagged(1, _INT.pack(leader))


def _tagged(tag: int, body: bytes) -> bytes:
    return bytes((tag,)) + _length(len(body)) + body


@lru_cache
def _length(number: int) -> bytes:
    out = bytearray()
    write_uvarint(out, number)
    return bytes(out)
