"""The keys of the state's records: a page, a piece of a page, and the mark."""

import struct

from bus.interface import Page

MARK_KEY = b"mark"
# The shard and the number of a page, or of a piece of one.
PageKey = tuple[int, int]
_PAGE_KEY = struct.Struct(">ii")
_PIECE_KEY = struct.Struct(">iq")
_PAGE_MAX = 2**31 - 1


def key_of(page: Page) -> bytes:
    """Return the key of a page or a piece. The pieces after a page's first one have longer keys."""
    key = _PAGE_KEY if page.page <= _PAGE_MAX else _PIECE_KEY
    return key.pack(page.shard, page.page)


def page_of(key: bytes) -> PageKey:
    """Return the shard and the number of the page with this key."""
    shard, page = (_PAGE_KEY if len(key) == _PAGE_KEY.size else _PIECE_KEY).unpack(key)
    return shard, page
