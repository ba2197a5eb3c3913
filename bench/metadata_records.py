"""Read the metadata log as a broker fetches it: batches, and the parts of their records that the benchmarks need.

The gateway's own codec would take longer to read a large log than a controller takes to write it.
"""

import base64
import struct
from collections.abc import Iterator
from typing import NamedTuple

from brokers.wire.batch_header import HEADER, batch_at

PARTITION, PARTITION_CHANGE, NO_OP = 3, 5, 20
_NUMBERS = struct.Struct(">i16s")
_EPOCHS = struct.Struct(">iii")
_VARINT_END = 0x80


class Partition(NamedTuple):
    """A partition as it was created."""

    topic_id: bytes
    partition: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int


class ReadBatch(NamedTuple):
    """One batch, and when a broker could act on it."""

    read_s: float
    data: bytes
    records: int
    next_offset: int
    leader_epoch: int

    @property
    def is_news(self) -> bool:
        """Whether the batch has more than one empty record."""
        return self.records > 1 or any(kind != NO_OP for kind, _ in records_in(self.data))


def whole_batches(data: bytes) -> Iterator[tuple[bytes, int, int, int, bool]]:
    """Cut fetched bytes into batches: (bytes, records, next offset, leader epoch, control).

    The last one may be cut off, and is then left out.
    """
    position = 0
    while (batch := batch_at(data, position)) is not None and position + batch.size <= len(data):
        piece = data[position : position + batch.size]
        yield piece, batch.records, batch.next_offset, batch.leader_epoch, bool(batch.attributes & 0x20)
        position += batch.size


def records_in(batch: bytes) -> Iterator[tuple[int, bytes]]:
    """Give each record's kind and its message, without the frame."""
    position = HEADER.size
    while position < len(batch):
        size, position = _varint(batch, position)
        end = position + size
        position += 1  # attributes
        for _ in ("timestamp delta", "offset delta", "key's length, -1"):
            position = _skipped(batch, position)
        length, position = _varint(batch, position)
        # Frame version, kind and the message's version are a byte each.
        yield batch[position + 1], batch[position + 3 : position + length]
        position = end


def partition_in(message: bytes) -> Partition:
    """Read a PartitionRecord up to its epochs."""
    number, topic_id = _NUMBERS.unpack_from(message)
    position = _NUMBERS.size
    arrays = []
    for _ in ("replicas", "isr", "removing", "adding"):
        count = message[position] - 1
        arrays.append(struct.unpack_from(f">{count}i", message, position + 1))
        position += 1 + 4 * count
    leader, leader_epoch, partition_epoch = _EPOCHS.unpack_from(message, position)
    return Partition(topic_id, number, arrays[0], arrays[1], leader, leader_epoch, partition_epoch)


def uuid_text(uuid: bytes) -> str:
    """Write a uuid as Kafka does."""
    return base64.urlsafe_b64encode(uuid).rstrip(b"=").decode()


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < _VARINT_END:
            return value >> 1 ^ -(value & 1), position
        shift += 7


def _skipped(data: bytes, position: int) -> int:
    while data[position] >= _VARINT_END:
        position += 1
    return position + 1
