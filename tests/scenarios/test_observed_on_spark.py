"""The Spark query adopts and audits what a stock controller did as the rules do, also across a restart."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from brokers.shadow.events import encoded, events_of
from controller_logic.replay import decide
from state.policy import Policy
from tests.brokers.shadow.worlds import LOGS, operations, recorded
from tests.scenarios.by_query import ByQuery
from tests.scenarios.script import Written
from tests.scenarios.telling import Scene


@pytest.mark.spark
@pytest.mark.xdist_group("spark_session")
def test_an_observed_cluster_is_decided_as_by_the_rules(spark_session: SparkSession, tmp_path: Path) -> None:
    found = operations(*recorded(LOGS / "kafka-4.0.2.tar.xz"))
    events = [encoded(event) for one in found for event in events_of(one, "observed")]
    written = [Written(seq, raw, False) for seq, raw in enumerate(events, start=1)]
    expected = decide([(one.seq, one.raw) for one in written], Policy())
    assert any(b'"kind":"violation"' in body for _, _, body in expected.decisions)
    half = len(written) // 2
    scenes = [Scene(written[:half], [], [], []), Scene(written[half:], [], [], ["the end"])]
    player = ByQuery(spark_session.newSession(), tmp_path, scenes, partitions=2, restarts=True)
    decided = player.play([(one.seq, one.raw) for one in written])
    assert [tuple(one) for one in decided] == expected.decisions
    assert player.view() == expected.view()
