"""Damaged data in an embedded bus is noticed when read, and named."""

from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.interface import DamagedError, Decided, Page
from isrflow.sqlite.bus_file import Access
from tests.support.engine import encoded


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A bus with an event, a claim, a decision and a page, not open in any process."""
    path = tmp_path / "bus.db"
    bus = EmbeddedBus(path)
    seq = bus.publish([encoded("delete_topic", topic="there-is-none")])
    claim = bus.claim("job", {}, 1)
    bus.commit(
        claim.controller_epoch, seq, [Decided(seq, 0, b'{"kind":"answer"}')], [Page(0, 3, b"a page of the state")]
    )
    bus.close()
    return path


def flip(path: Path, text: bytes) -> None:
    """Flip one bit of the file, in the place where it contains ``text``."""
    data = path.read_bytes()
    assert data.count(text) == 1
    place = data.index(text)
    path.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


@pytest.mark.parametrize(
    ("text", "named"),
    [
        (b"there-is-none", "event 1"),
        (b'"answer"}', r"decision \(1, 0\)"),
        (b"a page of", r"page \(0, 3\) of the state"),
    ],
)
@pytest.mark.parametrize("access", [Access.READ, Access.WRITE])
def test_a_flipped_bit_is_noticed_where_it_is_read(path: Path, access: Access, text: bytes, named: str) -> None:
    flip(path, text)
    bus = EmbeddedBus(path, access)
    with pytest.raises(DamagedError, match=named):
        bus.read(0, 1)
        bus.decisions((0, -1), 10)
        bus.image()
    bus.close()
