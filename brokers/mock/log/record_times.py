"""Find a record by its time within a batch."""

import zlib

from kafka.record.default_records import DefaultRecordBase
from kafka.record.util import decode_varint

from brokers.wire.batch_header import HEADER, Batch, batch_at
from brokers.wire.errors import ErrorCode, RefusedError

# A batch of a few kilobytes may unpack to gigabytes, and all other requests wait meanwhile.
UNPACKED_BYTES_MAX = 16 * 1024 * 1024
# Attributes, time, offset, length of the key and of the value, count of headers.
_RECORD_BYTES_MIN = 6
_GZIP = zlib.MAX_WBITS | 16
_TIME_MAX = 2**63 - 1


def first_at_or_after(data: bytes, timestamp: int) -> tuple[int, int] | None:
    """Return (timestamp, offset) of the first record of a batch that is not older than ``timestamp``.

    If the batch is neither plain nor gzip, return its first record. Raises ``RefusedError`` CORRUPT_MESSAGE if the
    records are damaged, or unpack to more than ``UNPACKED_BYTES_MAX``.
    """
    batch = batch_at(data, 0)
    assert batch is not None
    match batch.attributes & DefaultRecordBase.CODEC_MASK:
        case DefaultRecordBase.CODEC_NONE:
            records = data[HEADER.size :]
        case DefaultRecordBase.CODEC_GZIP:
            records = _unpacked(data[HEADER.size :])
        case _:
            return batch.first_timestamp, batch.base_offset
    try:
        return _first(records, batch, timestamp)
    except (IndexError, ValueError) as error:
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, f"the records at {batch.base_offset}: {error}") from error


def _unpacked(packed: bytes) -> bytes:
    unpacked = b""
    try:
        while packed:
            # Gzip allows several members, one after the other.
            member = zlib.decompressobj(_GZIP)
            unpacked += member.decompress(packed, UNPACKED_BYTES_MAX - len(unpacked) + 1)
            if len(unpacked) > UNPACKED_BYTES_MAX:
                raise RefusedError(
                    ErrorCode.CORRUPT_MESSAGE, f"a batch unpacks to more than {UNPACKED_BYTES_MAX} bytes"
                )
            if not member.eof:
                raise RefusedError(ErrorCode.CORRUPT_MESSAGE, "a batch's gzip is cut off")
            packed = member.unused_data
    except zlib.error as error:
        raise RefusedError(ErrorCode.CORRUPT_MESSAGE, f"a batch's gzip cannot be read: {error}") from error
    return unpacked


def _first(records: bytes, batch: Batch, timestamp: int) -> tuple[int, int] | None:
    """Walk the records by their lengths. Raises ``IndexError`` or ``ValueError`` if one is damaged."""
    has_append_time = batch.attributes & DefaultRecordBase.TIMESTAMP_TYPE_MASK
    position = 0
    for _ in range(batch.records):
        size, start = decode_varint(records, position)
        # One byte of attributes comes first.
        time_delta, position = decode_varint(records, start + 1)
        offset_delta, position = decode_varint(records, position)
        if size < _RECORD_BYTES_MIN or start + size > len(records):
            raise ValueError(f"a record of {size} bytes")
        time = batch.max_timestamp if has_append_time else batch.first_timestamp + time_delta
        if not 0 <= offset_delta <= batch.last_offset_delta or time > _TIME_MAX:
            raise ValueError("an offset or a time out of range")
        if time >= timestamp:
            return time, batch.base_offset + offset_delta
        position = start + size
    return None
