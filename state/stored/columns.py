"""Columns of small numbers: each number takes one, two or four bytes, as many as the greatest of them needs."""

import struct
from collections.abc import Sequence

_FORMATS = {2: "H", 4: "I"}


def column_of(numbers: Sequence[int]) -> bytes:
    """Write numbers, 0 ≤ number < 2**32, little-endian."""
    greatest = max(numbers, default=0)
    if greatest < 1 << 8:
        return bytes(numbers)
    width = 2 if greatest < 1 << 16 else 4
    return struct.pack(f"<{len(numbers)}{_FORMATS[width]}", *numbers)


def numbers_in(column: bytes, count: int) -> Sequence[int]:
    """Read ``count`` numbers. Raises ``ValueError`` if the column does not have as many."""
    if len(column) == count:
        return column
    width, rest = divmod(len(column), count or 1)
    if rest or width not in _FORMATS:
        raise ValueError(f"{len(column)} bytes are no column of {count} numbers")
    return struct.unpack(f"<{count}{_FORMATS[width]}", column)
