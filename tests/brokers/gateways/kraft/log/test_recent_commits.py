"""How long commits took lately."""

from brokers.gateways.kraft.log.recent_commits import WINDOW_S, RecentCommits


def test_commits_of_this_window_and_the_one_before_count() -> None:
    recent = RecentCommits(100.0)
    assert (recent.latency_s(100.0), recent.records_per_s(100.0)) == (0.0, 0.0)
    recent.add(101.0, 0.2, 30)
    recent.add(102.0, 0.4, 30)
    assert round(recent.latency_s(103.0), 3) == 0.3
    assert recent.records_per_s(103.0) == 60 / WINDOW_S
    recent.add(100 + WINDOW_S, 0.6, 0)
    assert round(recent.latency_s(100 + WINDOW_S), 3) == 0.4
    assert round(recent.latency_s(100 + 2 * WINDOW_S), 3) == 0.6, "the first window is over"
    assert recent.latency_s(100 + 4 * WINDOW_S) == 0.0
