"""Log lines about a clock skew: when it begins, when it doubles or halves, and when it ends."""

from structlog.testing import capture_logs

from state.cluster import Cluster
from streaming.engine_clock import SkewLog


def said(*skews_ms: int) -> list[tuple[str, int | None]]:
    log = SkewLog()
    with capture_logs() as lines:
        for nth, skew_ms in enumerate(skews_ms):
            entered_ms = 10_000_000 * (nth + 1)
            log.decided(Cluster(clock_ms=entered_ms + skew_ms, clock_entered_ms=entered_ms))
    return [(line["log_level"], line.get("by_ms")) for line in lines]


def test_a_right_clock_logs_nothing() -> None:
    assert said(0, 1_999, -1_999, 0) == []


def test_a_skew_is_logged_when_it_begins_doubles_halves_and_ends() -> None:
    lines = said(5_000, 5_100, 10_000, 9_000, 5_000, -4_000, 100, 0)
    assert lines == [("warning", 5_000), ("warning", 10_000), ("warning", 5_000), ("warning", -4_000), ("info", None)]


def test_a_clock_that_a_claim_set_back_is_logged() -> None:
    log = SkewLog()
    with capture_logs() as lines:
        log.decided(Cluster(clock_ms=10**15, clock_entered_ms=10**15))
        log.decided(Cluster(clock_ms=1_000, clock_entered_ms=1_000))
    assert [line["by_ms"] for line in lines] == [10**15 - 1_000]
