"""The time line and the list of decisions: bounded, in order, and each decision in its place."""

from typing import Any

import msgspec
import pytest

from bus.interface import Decided
from sinks.web import recent
from sinks.web.recent import GROUPS_MAX, Recent
from sinks.web.seen import LANES, Seen, seen
from sinks.web.timeline import WIDTHS_MS, Timeline
from tests.sinks.sample import BODIES, decision

WIDTH_MS = 1_000


def one(reason: str, time_ms: int = 5_000, kind: str = "leader_and_isr", **fields: Any) -> Seen:
    return msgspec.convert({"kind": kind, "seq": 1, "index": 0, "time_ms": time_ms, "reason": reason} | fields, Seen)


def lanes(timeline: Timeline, since: int = 0) -> list[dict[str, int]]:
    return [dict(zip(LANES, bucket[1:], strict=True)) for bucket in timeline.since(since)[str(WIDTH_MS)]]


@pytest.mark.parametrize(
    ("given", "lane"),
    [
        (one("LEADER_FENCED"), "elections"),
        (one("UNCLEAN_ELECTION", unclean=True), "unclean"),
        (one("UNCLEAN_ELECTION"), "elections"),
        (one("ELIGIBLE_ELECTION"), "elections"),
        (one("ISR_SHRUNK"), "isr"),
        (one("REPLICA_FENCED"), "isr"),
        (one("BROKER_SESSION_EXPIRED", kind="broker"), "brokers"),
        (one("TOPIC_CREATED"), "other"),
        (one("MALFORMED", kind="rejected"), "other"),
        (one("INVARIANT_VIOLATED", kind="violation"), "violations"),
        (one("RULES_DIFFER", kind="divergence"), "divergences"),
    ],
)
def test_each_decision_has_its_lane(given: Seen, lane: str) -> None:
    timeline = Timeline()
    timeline.add(given)
    assert lanes(timeline) == [dict.fromkeys(LANES, 0) | {lane: 1}]
    # The page's list shows it in the same lane.
    assert msgspec.to_builtins(given)["lane"] == lane


def test_decisions_of_one_second_are_one_bucket_and_only_changes_are_sent_again() -> None:
    timeline = Timeline()
    for time_ms in (5_000, 5_999, 6_000):
        timeline.add(one("ISR_SHRUNK", time_ms))
    version = timeline.version
    assert [bucket[0] for bucket in timeline.since(0)["1000"]] == [5_000, 6_000]
    assert timeline.since(version) == {"1000": [], "60000": []}
    timeline.add(one("ISR_SHRUNK", 6_400))
    assert [bucket[0] for bucket in timeline.since(version)["1000"]] == [6_000]
    # The engine's clock was set back by a claim.
    timeline.add(one("ISR_SHRUNK", 10))
    assert [bucket[0] for bucket in timeline.since(0)["1000"]] == [5_000, 6_000]


class Watched:
    """A decision, and a browser that looks at the time line each time when that asks for the decision's time."""

    lane = "isr"

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._version = 0
        self.counts: dict[tuple[str, int], int] = {}

    @property
    def time_ms(self) -> int:
        self.look()
        return 60_000

    def look(self) -> None:
        if self._version != self._timeline.version:
            former, self._version = self._version, self._timeline.version
            for width, buckets in self._timeline.since(former).items():
                self.counts |= {(width, bucket[0]): sum(bucket[1:]) for bucket in buckets}


def test_a_browser_that_looks_while_a_decision_is_counted_misses_nothing() -> None:
    timeline = Timeline()
    watched: Any = Watched(timeline)
    for count in (1, 2):
        timeline.add(watched)
        watched.look()
        assert watched.counts == {("1000", 60_000): count, ("60000", 60_000): count}


def test_the_time_line_is_bounded() -> None:
    timeline = Timeline()
    for second in range(WIDTHS_MS[WIDTH_MS] + 50):
        timeline.add(one("ISR_SHRUNK", second * 1_000))
    buckets = timeline.since(0)
    assert (len(buckets["1000"]), buckets["1000"][0][0]) == (WIDTHS_MS[WIDTH_MS], 50_000)
    assert len(buckets["60000"]) == 11


def test_what_nobody_looks_at_one_by_one_is_left_out() -> None:
    bodies = [*BODIES, decision("high_watermark", "REPLICATED", topic="t", partition=0), decision("no_op", "X")]
    kinds = [one.kind for one, _ in seen(Decided(1, n, body) for n, body in enumerate(bodies))]
    assert kinds == ["leader_and_isr"] * 5 + ["answer"] * 2 + ["rejected", "broker"]


def test_decisions_of_one_event_and_reason_are_one_line() -> None:
    latest = Recent()
    for partition in range(3):
        latest.add(one("LEADER_FENCED", topic="t", partition=partition), b"{}")
    latest.add(one("REPLICA_FENCED", topic="t", partition=9), b"{}")
    assert [(group.first.partition, group.count) for group in latest.groups(10)] == [(9, 1), (0, 3)]
    for number in range(GROUPS_MAX + 5):
        latest.add(one("ISR_SHRUNK", seq=2 + number), b"{}")
    assert len(latest.groups(1_000)) == GROUPS_MAX


def test_a_partitions_own_decisions_are_found_newest_first_and_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent, "KEPT_MAX", 6)
    latest = Recent()
    for number in range(10):
        body = decision("leader_and_isr", "ISR_SHRUNK", topic="t", partition=number % 2, leader_epoch=number, isr=[1])
        # As the engine writes it.
        latest.add(one("ISR_SHRUNK", topic="t", partition=number % 2), msgspec.json.format(body, indent=-1))
    assert [found.leader_epoch for found in latest.of("t", 1, 10)] == [9, 7, 5]
    assert [found.leader_epoch for found in latest.of("t", 0, 1)] == [8]
    assert latest.of("other", 0, 10) == latest.of("t", 11, 10) == []
