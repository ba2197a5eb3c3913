"""The query gives the same bytes as the rules, however a log is cut into batches."""

import pytest
from pyspark.errors import StreamingQueryException

from bus.interface import Entry
from conf.settings import Settings
from controller_logic.replay import decide
from streaming import replay as module
from streaming.replay import replay
from tests.support.random_logs import seeded

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("seed", "count", "max_events", "settings"),
    [
        (1, 600, None, Settings()),
        # Each Spark partition gets the shared events once, before its shards' own events.
        (2, 120, 17, Settings(shuffle_partitions=3)),
        (3, 3_000, 2_999, Settings(max_bytes_per_batch=40_000)),
    ],
)
def test_rules_and_spark_decide_the_same(seed: int, count: int, max_events: int | None, settings: Settings) -> None:
    log = seeded(seed, count)
    expected = decide(log, Settings().policy)
    bodies, view = replay([Entry(*entry) for entry in log], settings, {}, max_events)
    assert list(bodies) == [body for _, _, body in expected.decisions]
    assert view == expected.view()


def test_a_log_with_gaps_is_decided_by_other_settings() -> None:
    log = [Entry(seq * 1_000, raw) for seq, raw in seeded(4, 200)]
    overrides = {"unclean.leader.election.enable": "true", "broker.session.timeout.ms": "2000"}
    expected = decide(log, Settings().policy, overrides=overrides)
    bodies, view = replay(log, Settings(), overrides, max_events=30)
    assert list(bodies) == [body for _, _, body in expected.decisions]
    assert view == expected.view()
    assert view["seq"] == 200_000


def test_a_failed_query_is_reported_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise StreamingQueryException("the query failed\n\tat org.x.Y")

    monkeypatch.setattr(module, "run_through", fail)
    with pytest.raises(RuntimeError, match=r"^the query failed$"):
        replay([Entry(1, b"{}")], Settings(), {})
