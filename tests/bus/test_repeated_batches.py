"""A batch that is committed again must be the same. The buses on Kafka are on the node of ``kafka_servers``."""

import random

import pytest

from bus import pieces
from bus.interface import Bus, Decided, DivergedError, Page
from state.partition import Topic, TopicState
from state.stored import codec
from state.stored.codec import encode_slices
from state.stored.slices import slices_of
from tests.bus.test_any_bus import claimed
from tests.support.commits import readable


@pytest.mark.parametrize("again", [[Decided(1, 0, b"other")], [Decided(1, 1, b"one")]])
def test_a_repeated_batch_must_have_the_same_decisions(bus: Bus, again: list[Decided]) -> None:
    epoch = claimed(bus)
    bus.commit(epoch, 1, [Decided(1, 0, b"one")], [])
    with pytest.raises(DivergedError, match="came out differently"):
        bus.commit(epoch, 1, again, [])


def test_a_repeated_batch_must_have_the_same_state(bus: Bus) -> None:
    epoch = claimed(bus)
    bus.commit(epoch, 1, [Decided(1, 0, b"one")], [Page(0, 3, b"state")])
    bus.commit(epoch, 1, [Decided(1, 0, b"one")], [Page(0, 3, b"state")])
    for page in (Page(0, 3, b"other"), Page(0, 4, b"state")):
        with pytest.raises(DivergedError, match=rf"page \(0, {page.page}\) of the state came out differently"):
            bus.commit(epoch, 1, [], [page])
    readable(1, bus)
    assert bus.image().pages == [Page(0, 3, b"state")]


def test_a_repeated_batch_may_be_compressed_by_another_release(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    epoch, large = claimed(bus), bytes(random.Random(1).choices(range(64), k=6 * 1024 * 1024))
    slices = slices_of(Topic("t", large.decode("latin1"), TopicState.created, {}, ()))
    first = encode_slices(slices)
    bus.commit(epoch, 1, [], [Page(0, 3, first)])
    monkeypatch.setattr(codec, "COMPRESSION_LEVEL", 9)
    again = encode_slices(slices)
    assert (again == first, len(first) > pieces.PIECE_BYTES_MAX) == (False, True)
    bus.commit(epoch, 1, [], [Page(0, 3, again)])
    with pytest.raises(DivergedError, match=r"page \(0, 3\) of the state came out differently"):
        bus.commit(epoch, 1, [], [Page(0, 3, encode_slices([]))])
