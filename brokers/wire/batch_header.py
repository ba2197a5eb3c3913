"""The headers of record batches of magic 2, the same on disk and on the wire. Records are not read here."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from kafka.record.default_records import DefaultRecordBase
from kafka.record.util import calc_crc32c

HEADER: struct.Struct = DefaultRecordBase.HEADER_STRUCT
CRC_FROM: int = DefaultRecordBase.ATTRIBUTES_OFFSET
LENGTH_UP_TO: int = DefaultRecordBase.AFTER_LEN_OFFSET
MAGIC = 2


class Batch(NamedTuple):
    """The header of one record batch."""

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
        return self.last_offset + 1


def batch_at(data: bytes | bytearray | memoryview, position: int) -> Batch | None:
    """Read the header at ``position``. Return None if the bytes end within it, or if it is not plausible."""
    if len(data) - position < HEADER.size:
        return None
    batch = Batch._make(HEADER.unpack_from(data, position))
    plausible = (
        batch.magic == MAGIC and batch.size >= HEADER.size and batch.last_offset_delta >= 0 and batch.base_offset >= 0
    )
    return batch if plausible else None


def batches_in(data: bytes | bytearray | memoryview) -> Iterator[tuple[int, Batch]]:
    """Walk the whole batches in ``data`` with their positions, and stop at one that is cut off."""
    position = 0
    while (batch := batch_at(data, position)) is not None and position + batch.size <= len(data):
        yield position, batch
        position += batch.size


def intact(data: memoryview, batch: Batch) -> bool:
    """Return whether the CRC matches; ``data`` must be exactly the batch."""
    return bool(calc_crc32c(data[CRC_FROM:]) == batch.crc)
