"""Checksums of what the embedded bus keeps, because SQLite notices damage to its own structure alone.

A flipped bit inside of an event would be decided on, and one in a page of state would be the state. So each event,
decision and page has a CRC-32 beside it. Rows that an isrflow of before has written have none, and are believed.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bus.interface import DamagedError


def with_crc(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Put the checksum of each row's last value behind it."""
    return ((*row, zlib.crc32(row[-1])) for row in rows)


def check(body: bytes, crc: int | None, what: str) -> bytes:
    """Return ``body`` if its checksum is right; raises ``DamagedError`` that names ``what``."""
    if crc is not None and zlib.crc32(body) != crc:
        raise DamagedError(f"{what} is damaged on disk: its checksum is wrong. Restore the file from a backup")
    return body
