"""Whole record batches of magic 2 as a log holds them, including control batches.

Batches are uncompressed, without a producer and without headers. A batch's bytes are a pure function of the arguments.
A record of the metadata log is given as ``(None, frame)``, and a control record as ``(control_key(type), message)``.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kafka.errors import CorruptRecordError
from kafka.record.default_records import DefaultRecordBase, DefaultRecordBatch
from kafka.record.util import calc_crc32c, encode_varint

from brokers.wire.batch_header import CRC_FROM, HEADER, LENGTH_UP_TO, MAGIC, Batch, intact
from brokers.wire.messages import WireError

# Kafka's ``ControlRecordType``.
LEADER_CHANGE, SNAPSHOT_HEADER, SNAPSHOT_FOOTER, KRAFT_VERSION, KRAFT_VOTERS = 2, 3, 4, 5, 6
BATCH_BYTES_MAX = 64 * 1024 * 1024
_CRC = struct.Struct(">I")
_CRC_AT = CRC_FROM - _CRC.size
_CONTROL: int = DefaultRecordBase.CONTROL_MASK
_NO_PRODUCER = (-1, -1, -1)

KeyAndValue = tuple[bytes | None, bytes]


class BatchError(WireError):
    """These bytes are not a whole and intact batch. ``position`` is where it begins."""

    def __init__(self, what: str, position: int) -> None:
        super().__init__(f"the record batch at byte {position}: {what}")
        self.position = position


class RecordBatch(NamedTuple):
    """One decoded batch."""

    base_offset: int
    leader_epoch: int
    timestamp_ms: int
    control: bool
    # The offset of ``records[i]`` is ``base_offset + i``.
    records: tuple[KeyAndValue, ...]
    # In bytes.
    size: int

    @property
    def next_offset(self) -> int:
        return self.base_offset + len(self.records)


def control_key(control_type: int) -> bytes:
    """Write the key of a control record: version 0 and its type."""
    return b"\0\0" + control_type.to_bytes(2, "big")


def encode_batch(
    base_offset: int, leader_epoch: int, timestamp_ms: int, records: Sequence[KeyAndValue], *, control: bool = False
) -> bytes:
    """Write one batch. Raises ``ValueError`` for no records, or for more than ``BATCH_BYTES_MAX``."""
    if not records:
        raise ValueError("a batch has at least one record")
    out = bytearray(b"".join((bytes(HEADER.size), *_written(records))))
    if len(out) > BATCH_BYTES_MAX:
        raise ValueError(f"a batch of {len(out)} bytes; the limit is {BATCH_BYTES_MAX}")
    attributes, count, size = (_CONTROL if control else 0), len(records), len(out) - LENGTH_UP_TO
    times = (timestamp_ms, timestamp_ms)
    HEADER.pack_into(
        out, 0, base_offset, size, leader_epoch, MAGIC, 0, attributes, count - 1, *times, *_NO_PRODUCER, count
    )
    _CRC.pack_into(out, _CRC_AT, calc_crc32c(memoryview(out)[CRC_FROM:]))
    return bytes(out)


def _written(records: Sequence[KeyAndValue]) -> list[bytes]:
    written: list[bytes] = []
    for offset_delta, (key, value) in enumerate(records):
        # A record's attributes and the delta of its time are always 0.
        around = b"\0\0" + _varint(offset_delta) + (_NULL if key is None else _varint(len(key)) + key)
        around += _varint(len(value))
        written += (_varint(len(around) + len(value) + len(_NO_HEADERS)), around, value, _NO_HEADERS)
    return written


def _written_varint(number: int) -> bytes:
    out = bytearray()
    encode_varint(number, out.append)
    return bytes(out)


_NULL = _written_varint(-1)
_NO_HEADERS = b"\0"
# A zigzag varint has six bits of a number's magnitude in its first byte, and seven more in each further one.
_TWO_BYTES, _THREE_BYTES = 1 << 13, 1 << 20
_SHORT = tuple(_written_varint(number) for number in range(_TWO_BYTES))
_LOW = tuple(_written_varint(number + _TWO_BYTES)[:2] for number in range(_TWO_BYTES))
_HIGH = tuple(bytes((byte,)) for byte in range(_THREE_BYTES // _TWO_BYTES))


def _varint(number: int) -> bytes:
    if number < _TWO_BYTES:
        return _SHORT[number]
    if number < _THREE_BYTES:
        return _LOW[number & (_TWO_BYTES - 1)] + _HIGH[number >> 13]
    return _written_varint(number)


def decode_batches(data: bytes | memoryview) -> Iterator[RecordBatch]:
    """Read the batches that make up all of ``data``. Raises ``BatchError`` at the first that is damaged or cut off."""
    view, position = memoryview(data), 0
    while position < len(view):
        batch = _decode(view, position)
        yield batch
        position += batch.size


def _decode(view: memoryview, position: int) -> RecordBatch:
    left = len(view) - position
    if left < HEADER.size:
        raise BatchError(f"{left} bytes are left, and a header has {HEADER.size}", position)
    batch = Batch._make(HEADER.unpack_from(view, position))
    if batch.magic != MAGIC:
        raise BatchError(f"magic {batch.magic}, not {MAGIC}", position)
    if not HEADER.size <= batch.size <= min(left, BATCH_BYTES_MAX):
        raise BatchError(f"{batch.size} bytes are announced and {left} are left", position)
    data = view[position : position + batch.size]
    if not intact(data, batch):
        raise BatchError("the CRC does not match", position)
    if batch.attributes & ~_CONTROL or batch.records < 1 or batch.last_offset_delta != batch.records - 1:
        raise BatchError("compressed, transactional, or with gaps between its offsets", position)
    is_control = bool(batch.attributes & _CONTROL)
    records = _records(data, position)
    return RecordBatch(batch.base_offset, batch.leader_epoch, batch.first_timestamp, is_control, records, batch.size)


def _records(data: memoryview, position: int) -> tuple[KeyAndValue, ...]:
    try:
        return tuple((record.key, record.value or b"") for record in DefaultRecordBatch(data))
    except (CorruptRecordError, ValueError, IndexError, TypeError, struct.error) as error:
        raise BatchError(f"its records cannot be read: {error}", position) from error
