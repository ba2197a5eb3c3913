"""What follows a commit fails alone: the decisions stay written, the other parts are done, and the query goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from structlog.testing import capture_logs

from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from conf.settings import Settings
from sinks.known_labels import PARTS_AFTER_COMMIT
from sinks.metrics import Metrics
from sinks.web.health import CLOCK_OFF_MS_MAX
from streaming.batch_writer import BatchWriter
from streaming.tenure import Tenure
from tests.support.engine import decisions_of, encoded
from tests.support.observing import Shadow, broker
from tests.support.operators import OperatorCluster


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    yield bus
    bus.close()


@pytest.fixture
def tenure(bus: EmbeddedBus) -> Iterator[Tenure]:
    tenure = Tenure(bus, Settings(tick_idle_interval_ms=300_000))
    tenure.begin()
    yield tenure
    tenure.stop_ticks()


# Where each part begins.
BEGINS = {
    "state": "streaming.batch_writer.decode_cluster",
    "log": "streaming.engine_log.EngineLog.committed",
    "imbalance": "streaming.batch_writer.feedback_events",
    "clock": "streaming.ticker.Ticker.decided",
    "metrics": "sinks.metrics.Metrics.committed",
}


def writer(bus: EmbeddedBus, tenure: Tenure, metrics: Metrics, site: Any) -> OperatorCluster:
    operators = OperatorCluster(bus)
    operators.log = BatchWriter(bus, Settings(), tenure, metrics, site)  # type: ignore[assignment]
    return operators


@pytest.mark.parametrize("part", PARTS_AFTER_COMMIT)
def test_each_part_that_follows_a_commit_fails_alone(
    bus: EmbeddedBus, tenure: Tenure, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    metrics, site = Metrics(), Mock()
    broken = Mock(side_effect=ZeroDivisionError("a defect"))
    if part == "page":
        site.committed = broken
    else:
        monkeypatch.setattr(BEGINS[part], broken)
    operators = writer(bus, tenure, metrics, site)
    with capture_logs() as lines:
        for number in (1, 2):
            before = bus.decided_seq()
            seq = bus.publish([encoded("broker_register", broker=number, incarnation="a")])
            operators.batch(bus.read(before, seq))
    assert {seq for seq, _, _ in decisions_of(bus)} >= {seq}
    assert bus.decided_seq() == seq
    assert metrics.snapshot.failed_after_commit[part] >= 2
    assert set(metrics.snapshot.failed_after_commit) == {part}
    # Once, with its traceback.
    [line] = [line for line in lines if "deciding goes on" in line["event"]]
    assert (line["log_level"], line["part"], line["exc_info"]) == ("error", part, True)
    if part != "page":
        assert site.committed.call_count == 2
    if part != "metrics":
        assert metrics.decided_seq == seq


def test_nothing_fails_in_a_good_batch_nor_in_the_last_one_of_a_job(bus: EmbeddedBus, tenure: Tenure) -> None:
    metrics = Metrics()
    operators = writer(bus, tenure, metrics, Mock())
    tenure.stop_ticks()
    operators.batch(bus.read(0, bus.publish([encoded("broker_register", broker=1, incarnation="a")])))
    assert metrics.snapshot.failed_after_commit == {}


def test_the_clock_of_an_observed_cluster_is_not_the_engines(bus: EmbeddedBus, tenure: Tenure) -> None:
    metrics, world = Metrics(), Shadow()
    world.observe("seed", brokers=[broker(1)])
    operators = writer(bus, tenure, metrics, Mock())
    with capture_logs() as lines:
        for raw in (*world.log, encoded("tick", controller_epoch=1, time_ms=now_ms())):
            before = bus.decided_seq()
            operators.batch(bus.read(before, bus.publish_own([raw])))
    assert metrics.snapshot.clock_ms == world.now, "it stands still"
    assert abs(metrics.snapshot.clock_off_ms or 0) < CLOCK_OFF_MS_MAX
    assert metrics.snapshot.bus_clock_off_ms is None
    assert [line for line in lines if line["log_level"] == "warning"] == []
