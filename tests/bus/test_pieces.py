"""Pages of the state in pieces: whole for writers and readers, and small enough for every bus."""

import pytest

from bus import pieces
from bus.interface import BusError, Page
from isrflow.kafka.limits import MESSAGE_BYTES_MAX

PIECE_BYTES_MAX = pieces.PIECE_BYTES_MAX


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces, "PIECE_BYTES_MAX", 10)


def test_a_small_page_is_stored_as_it_is() -> None:
    pages = [Page(0, -1, b"cluster"), Page(3, 7, b"0123456789")]
    assert list(pieces.cut(pages)) == pages == pieces.joined(pages)


@pytest.mark.parametrize("size", [11, 20, 21, 1_000])
def test_a_large_page_is_split_and_read_back(size: int) -> None:
    pages = [Page(0, -1, b"\x01" * size), Page(0, 0, b"small"), Page(0, 5, bytes(n % 256 for n in range(size)))]
    cut = list(pieces.cut(pages))
    assert len(cut) == 1 + 2 * -(-size // 10)
    assert len({(page.shard, page.page) for page in cut}) == len(cut)
    assert max(len(page.body) for page in cut) <= 20
    assert pieces.joined(reversed(cut)) == pages


def test_leftover_pieces_of_a_larger_page_are_ignored() -> None:
    before = {page.page: page for page in pieces.cut([Page(0, 1, b"a" * 100)])}
    for body in (b"b" * 25, b"small"):
        now = before | {page.page: page for page in pieces.cut([Page(0, 1, body)])}
        assert pieces.joined(now.values()) == [Page(0, 1, body)]


def test_a_missing_piece_is_named() -> None:
    first, *_, last = pieces.cut([Page(2, 1, b"a" * 30)])
    with pytest.raises(BusError, match="piece 1 of page 1 of shard 2 is missing"):
        pieces.joined([first, last])


def test_a_piece_fits_a_message() -> None:
    assert PIECE_BYTES_MAX + 100 < MESSAGE_BYTES_MAX
