"""The inbox of the live page is bounded, and keeps only the newest version of each page of the state."""

import pytest

from bus.interface import Decided, Page
from sinks.web import inbox
from sinks.web.inbox import Inbox
from state.cluster import Cluster


def decided(count: int, size: int = 10) -> list[Decided]:
    return [Decided(1, number, b"x" * size) for number in range(count)]


def started() -> Inbox:
    place = Inbox()
    place.take()
    return place


def test_the_newest_of_each_page_is_left() -> None:
    place = started()
    place.committed(1, [Cluster()], [Page(0, -1, b"c"), Page(0, 0, b"a"), Page(0, 1, b"b")], decided(2))
    place.committed(2, [Cluster(seq=2)], [Page(0, 0, b"A")], decided(1))
    taken = place.take()
    assert taken.pages == {(0, 0): (2, b"A"), (0, 1): (1, b"b")}
    assert (taken.through, taken.clusters, taken.is_stale) == (2, [Cluster(seq=2)], False)
    assert [len(decisions) for decisions in taken.decisions] == [2, 1]
    assert place.take().clusters == ()


def test_pages_follow_only_once_the_state_is_read() -> None:
    place = started()
    place.begin()
    place.committed(1, [Cluster()], [Page(0, 0, b"a")], [])
    taken = place.take()
    assert (taken.is_stale, taken.pages) == (True, {})
    place.committed(2, [Cluster()], [Page(0, 0, b"b")], [])
    assert place.take().pages == {(0, 0): (2, b"b")}


def test_too_many_bytes_of_pages_are_dropped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox, "PAGE_BYTES_MAX", 100)
    place = started()
    for number in range(50):
        place.committed(number, [Cluster()], [Page(0, 0, b"x" * 90)], [])
    assert not place.take().is_stale, "the same page again takes no more room"
    place.committed(1, [Cluster()], [Page(0, number, b"x" * 90) for number in range(2)], [])
    taken = place.take()
    assert (taken.is_stale, taken.pages) == (True, {})


@pytest.mark.parametrize(("limit", "value"), [("DECISIONS_MAX", 250), ("DECISION_BYTES_MAX", 2_500)])
def test_old_decisions_are_dropped_and_counted(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(inbox, limit, value)
    place = started()
    for number in range(4):
        place.committed(number, [Cluster()], [], decided(100))
    taken = place.take()
    assert (len(taken.decisions), taken.dropped) == (2, 200)
    place.committed(9, [Cluster()], [], decided(1_000))
    assert (place.take().dropped, place.take().dropped) == (1_000, 0)
