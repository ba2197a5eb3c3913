"""Cut pages of the state into pieces that every bus can carry, and put them together again.

A page has any length; a message of Kafka has not. Whoever writes or reads state sees whole pages.
"""

import struct
from collections.abc import Iterable, Iterator

from bus.interface import BusError, Page

PIECE_BYTES_MAX = 4 * 1024 * 1024
# No state begins like this: its first byte is a version, and those count up from 1.
_CUT = b"\xffcut"
_COUNT = struct.Struct(">I")
# A page's further pieces stand beside it under numbers of their own, beyond those of all pages.
_NEXT_PIECE = 1 << 40


def cut(pages: Iterable[Page]) -> Iterator[Page]:
    """Give each page that is small enough as it is, and of a larger one the pieces."""
    for page in pages:
        if len(page.body) <= PIECE_BYTES_MAX:
            yield page
            continue
        starts = range(0, len(page.body), PIECE_BYTES_MAX)
        for nth, start in enumerate(starts):
            head = _CUT + _COUNT.pack(len(starts)) if nth == 0 else b""
            yield Page(page.shard, page.page + nth * _NEXT_PIECE, head + page.body[start : start + PIECE_BYTES_MAX])


def joined(pages: Iterable[Page]) -> list[Page]:
    """Put pages together again, in order; pieces of what was larger once are left aside.

    Raises ``BusError`` when a piece is missing.
    """
    held = {(page.shard, page.page): page for page in pages}
    return [_whole(held, page) for place, page in sorted(held.items()) if place[1] < _NEXT_PIECE - 1]


def _whole(held: dict[tuple[int, int], Page], page: Page) -> Page:
    if not page.body.startswith(_CUT):
        return page
    head = len(_CUT) + _COUNT.size
    (count,) = _COUNT.unpack(page.body[len(_CUT) : head])
    pieces = [page.body[head:]]
    for nth in range(1, count):
        piece = held.get((page.shard, page.page + nth * _NEXT_PIECE))
        if piece is None:
            raise BusError(f"piece {nth} of page {page.page} of shard {page.shard} is missing on the bus")
        pieces.append(piece.body)
    return page._replace(body=b"".join(pieces))
