"""Checksums of what the embedded bus stores, because SQLite only notices damage to its own structure.

A bit that flips in an event would lead to other decisions, and one in a page would change the state. So each event,
decision and page has a CRC-32 beside it.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from isrflow.errors import DamagedError


def with_crc(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield each row with the checksum of its last value appended."""
    return ((*row, zlib.crc32(row[-1])) for row in rows)


def check(body: bytes, crc: int, what: str) -> bytes:
    """Return ``body`` if its checksum is right. Raises ``DamagedError``, which names ``what``."""
    if zlib.crc32(body) != crc:
        raise DamagedError(f"{what} is damaged on disk: its checksum is wrong. Restore the file from a backup")
    return body
