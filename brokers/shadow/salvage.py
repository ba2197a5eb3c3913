"""The batches in the bytes of a segment, some of which may be damaged.

What is whole is kept. After damage the search goes on at the next bytes that are a batch whose CRC matches.
"""

import re
from collections.abc import Iterator

from brokers.shadow.source import Damage, Gap
from brokers.wire.batch_header import HEADER, MAGIC, Batch, batch_at, intact
from brokers.wire.record_batch import BATCH_BYTES_MAX, BatchError, RecordBatch, decode_batches

# Where a header has its magic: after the base offset, the length and the epoch of the leader.
_MAGIC_AT = 16
_MAGIC = re.compile(re.escape(bytes((MAGIC,))))


def salvaged(data: bytes, expected: int, *, is_last: bool) -> Iterator[RecordBatch | Damage | Gap]:
    """Yield the whole batches from offset ``expected`` on, what is wrong between them, and which offsets are missing.

    Batches before ``expected`` are skipped. The last segment of a log may end within a batch, because its node was
    writing it; Kafka fills the rest with zeros.
    """
    view, position = memoryview(data), 0
    while position < len(view):
        batch = whole_at(view, position)
        if batch is None:
            following = _next_whole(view, position + 1, expected)
            if following is None:
                if not (is_last and _is_cut_off(view, position)):
                    yield Damage(expected, f"nothing can be read from byte {position} of {len(view)} on")
                return
            yield Damage(expected, f"bytes {position} to {following} are no batch whose CRC matches")
            position = following
            continue
        end = position + batch.size
        if batch.base_offset >= expected:
            if batch.base_offset > expected:
                yield Gap(expected, batch.base_offset, "its records are missing or damaged")
            expected = batch.next_offset
            try:
                yield next(decode_batches(view[position:end]))
            except BatchError as error:
                yield Damage(batch.base_offset, str(error))
                yield Gap(batch.base_offset, batch.next_offset, "its batch cannot be read")
        position = end


def whole_at(view: memoryview, position: int) -> Batch | None:
    """Read the header of the batch at ``position``. Return None if none is there, or none that is whole and intact."""
    batch = batch_at(view, position)
    if batch is None or batch.size > min(len(view) - position, BATCH_BYTES_MAX):
        return None
    return batch if intact(view[position : position + batch.size], batch) else None


def _next_whole(view: memoryview, position: int, expected: int) -> int | None:
    """Return where the next batch begins that a log could have after ``expected``."""
    for found in _MAGIC.finditer(view, position + _MAGIC_AT):
        start = found.start() - _MAGIC_AT
        batch = whole_at(view, start)
        if batch is not None and batch.base_offset >= expected:
            return start
    return None


def _is_cut_off(view: memoryview, position: int) -> bool:
    """Return whether a batch begins at ``position`` and the bytes end within it, or only zeros are left."""
    if len(view) - position < HEADER.size or not any(view[position:]):
        return True
    batch = batch_at(view, position)
    return batch is not None and position + batch.size > len(view)
