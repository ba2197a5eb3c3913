"""The checks that a leader makes on produced batches, and what it writes into them."""

import struct

from kafka.record.default_records import DefaultRecordBase

from brokers.wire.batch_header import LENGTH_UP_TO, MAGIC, Batch, batch_at, intact
from brokers.wire.errors import ErrorCode, RefusedError

NO_PRODUCER_ID = -1
_BASE_OFFSET = struct.Struct(">q")
_LEADER_EPOCH = struct.Struct(">i")
_LEADER_EPOCH_AT = LENGTH_UP_TO
_REFUSED_ATTRIBUTES = DefaultRecordBase.TRANSACTIONAL_MASK | DefaultRecordBase.CONTROL_MASK


def produced(records: bytes | memoryview | None, max_bytes: int) -> Batch:
    """Check a producer's records for one partition: exactly one intact batch of plain records.

    Raises ``RefusedError`` with the error that Kafka gives.
    """
    if not records:
        raise RefusedError(ErrorCode.INVALID_RECORD, "no record batch")
    view = memoryview(records)
    if len(view) > LENGTH_UP_TO + 4 and view[LENGTH_UP_TO + 4] != MAGIC:
        raise RefusedError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "only magic 2 is supported")
    batch = batch_at(view, 0)
    if batch is None or batch.size > len(view):
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, "the batch is cut off or its header makes no sense")
    if batch.size != len(view):
        raise RefusedError(ErrorCode.INVALID_RECORD, "only one batch per partition and request is allowed")
    if batch.size > max_bytes:
        raise RefusedError(ErrorCode.MESSAGE_TOO_LARGE, f"{batch.size} bytes; the limit is {max_bytes}")
    if not intact(view, batch):
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, "the CRC does not match")
    if batch.records < 1 or batch.records != batch.last_offset_delta + 1:
        raise RefusedError(ErrorCode.INVALID_RECORD, "the count of records does not fit their offsets")
    if batch.attributes & _REFUSED_ATTRIBUTES:
        raise RefusedError(ErrorCode.INVALID_RECORD, "neither transactions nor control records are supported")
    return batch


def stamped(records: bytes | memoryview, base_offset: int, leader_epoch: int) -> bytearray:
    """Copy a batch with its leader's offset and epoch, neither of which the CRC covers."""
    data = bytearray(records)
    _BASE_OFFSET.pack_into(data, 0, base_offset)
    _LEADER_EPOCH.pack_into(data, _LEADER_EPOCH_AT, leader_epoch)
    return data
