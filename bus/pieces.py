"""Pages of the state in pieces that every bus can carry.

A page may have any length, but a Kafka message may not. Callers of a bus only see whole pages.
"""

import struct
from collections.abc import Iterable, Iterator
from itertools import count

from bus.interface import BusError, Page

PIECE_BYTES_MAX = 4 * 1024 * 1024
# No encoded state starts with this, because its first byte is a small version number.
_CUT = b"\xffcut"
_COUNT = struct.Struct(">I")
# The first piece of a page has the page's number. Further pieces have numbers greater than any page's.
_NEXT_PIECE = 1 << 40


def cut(pages: Iterable[Page]) -> Iterator[Page]:
    """Yield each small page as it is, and each larger one in pieces."""
    for page in pages:
        if len(page.body) <= PIECE_BYTES_MAX:
            yield page
            continue
        starts = range(0, len(page.body), PIECE_BYTES_MAX)
        for nth, start in enumerate(starts):
            head = _CUT + _COUNT.pack(len(starts)) if nth == 0 else b""
            yield Page(page.shard, page.page + nth * _NEXT_PIECE, head + page.body[start : start + PIECE_BYTES_MAX])


def places(page: Page) -> Iterator[tuple[int, int]]:
    """Yield the places of a page's pieces, as many as are asked for."""
    return ((page.shard, page.page + nth * _NEXT_PIECE) for nth in count())


def joined(pages: Iterable[Page]) -> list[Page]:
    """Put pages together again, in order. Pieces that remain from a larger, older version of a page are ignored.

    Raises ``BusError`` if a piece is missing.
    """
    held = {(page.shard, page.page): page for page in pages}
    return [_whole(held, page) for place, page in sorted(held.items()) if place[1] < _NEXT_PIECE - 1]


def _whole(held: dict[tuple[int, int], Page], page: Page) -> Page:
    if not page.body.startswith(_CUT):
        return page
    head = len(_CUT) + _COUNT.size
    (pieces_count,) = _COUNT.unpack(page.body[len(_CUT) : head])
    pieces = [page.body[head:]]
    for nth in range(1, pieces_count):
        piece = held.get((page.shard, page.page + nth * _NEXT_PIECE))
        if piece is None:
            raise BusError(f"piece {nth} of page {page.page} of shard {page.shard} is missing on the bus")
        pieces.append(piece.body)
    return page._replace(body=b"".join(pieces))
