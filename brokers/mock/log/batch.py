"""Record batches of magic 2: their headers, their checks, and what a leader writes into them."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kafka.errors import KafkaError
from kafka.record.default_records import DefaultRecordBase, DefaultRecordBatch
from kafka.record.util import calc_crc32c

from isrflow.brokers.wire.errors import ErrorCode, RefusedError

HEADER: struct.Struct = DefaultRecordBase.HEADER_STRUCT
CRC_FROM: int = DefaultRecordBase.ATTRIBUTES_OFFSET
LENGTH_UP_TO: int = DefaultRecordBase.AFTER_LEN_OFFSET
MAGIC = 2
NO_PRODUCER_ID = -1
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_AT = LENGTH_UP_TO
_REFUSED_ATTRIBUTES = DefaultRecordBase.TRANSACTIONAL_MASK | DefaultRecordBase.CONTROL_MASK


class Batch(NamedTuple):
    """Hold the header of one record batch, as it stands on disk and on the wire."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    first_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records: int

    @property
    def size(self) -> int:
        return self.length + LENGTH_UP_TO

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


def batch_at(data: bytes | bytearray | memoryview, position: int) -> Batch | None:
    """Read the header at ``position``; None when the bytes end before the header does, or make no sense."""
    if len(data) - position < HEADER.size:
        return None
    batch = Batch._make(HEADER.unpack_from(data, position))
    plausible = (
        batch.magic == MAGIC and batch.size >= HEADER.size and batch.last_offset_delta >= 0 and batch.base_offset >= 0
    )
    return batch if plausible else None


def batches_in(data: bytes | bytearray | memoryview) -> Iterator[tuple[int, Batch]]:
    """Walk the whole batches in ``data``, with their positions; a last one that is cut off is left out."""
    position = 0
    while (batch := batch_at(data, position)) is not None and position + batch.size <= len(data):
        yield position, batch
        position += batch.size


def intact(data: memoryview, batch: Batch) -> bool:
    """Say whether the CRC fits; ``data`` is exactly the batch."""
    return bool(calc_crc32c(data[CRC_FROM:]) == batch.crc)


def produced(records: bytes | memoryview | None, max_bytes: int) -> Batch:
    """Check what a producer sent for one partition: one intact batch of plain records.

    Raises ``RefusedError`` with the error Kafka gives.
    """
    if not records:
        raise RefusedError(ErrorCode.INVALID_RECORD, "no record batch")
    view = memoryview(records)
    if len(view) > LENGTH_UP_TO + 4 and view[LENGTH_UP_TO + 4] != MAGIC:
        raise RefusedError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "only magic 2 is taken")
    batch = batch_at(view, 0)
    if batch is None or batch.size > len(view):
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, "the batch is cut off or its header makes no sense")
    if batch.size != len(view):
        raise RefusedError(ErrorCode.INVALID_RECORD, "one batch for a partition and request, no more")
    if batch.size > max_bytes:
        raise RefusedError(ErrorCode.MESSAGE_TOO_LARGE, f"{batch.size} bytes; the limit is {max_bytes}")
    if not intact(view, batch):
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, "the CRC does not fit")
    if batch.records < 1 or batch.records != batch.last_offset_delta + 1:
        raise RefusedError(ErrorCode.INVALID_RECORD, "the count of records does not fit their offsets")
    if batch.attributes & _REFUSED_ATTRIBUTES:
        raise RefusedError(ErrorCode.INVALID_RECORD, "neither transactions nor control records are taken")
    return batch


def stamped(records: bytes | memoryview, base_offset: int, leader_epoch: int) -> bytearray:
    """Copy a batch with the offset and leader epoch that its leader gives it; the CRC covers neither."""
    data = bytearray(records)
    _BASE_OFFSET.pack_into(data, 0, base_offset)
    _LEADER_EPOCH.pack_into(data, _LEADER_EPOCH_AT, leader_epoch)
    return data


def first_at_or_after(data: bytes, timestamp: int) -> tuple[int, int] | None:
    """Find (timestamp, offset) of the first record in one batch that is not older than ``timestamp``.

    A batch whose compression cannot be read here answers with its first record.
    """
    batch = batch_at(data, 0)
    assert batch is not None
    try:
        for record in DefaultRecordBatch(data):
            if record.timestamp >= timestamp:
                return int(record.timestamp), int(record.offset)
    except (KafkaError, NotImplementedError, ImportError):
        return batch.first_timestamp, batch.base_offset
    return None
