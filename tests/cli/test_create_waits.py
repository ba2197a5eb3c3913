"""A topic that is created while the brokers start."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import beat, publish, wait_for
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S


@pytest.fixture
def starting(tmp_path: Path) -> Iterator[dict[int, int]]:
    """The epochs of two brokers that are registered, while none is active."""
    path = tmp_path / "data" / "bus.db"
    bus = EmbeddedBus(path)
    engine = RulesEngine()
    engine.start(path, broker_session_timeout_ms=3_600_000, tick_idle_interval_ms=500)
    epochs = {broker: publish(bus, kind="broker_register", broker=broker, incarnation="a") for broker in (1, 2)}
    wait_for(bus, epochs[2])
    bus.close()
    yield epochs
    engine.stop()


def test_it_waits_until_enough_brokers_are_active(isrflow: Isrflow, starting: dict[int, int], tmp_path: Path) -> None:
    def unfence() -> None:
        bus = EmbeddedBus(tmp_path / "data" / "bus.db")
        for broker, epoch in starting.items():
            beat(bus, broker, epoch)
        bus.close()

    later = threading.Timer(1.0, unfence)
    later.start()
    done = isrflow("topics", "create", "clicks", "--partitions", "1", "--replication-factor", "2")
    later.join(TIMEOUT_S)
    assert (done.exit_code, done.stdout) == (0, "Created topic clicks.\n"), done.output
    assert done.stderr == "Waiting for brokers to become active: 0 are active, and 2 would do.\n"


def test_it_waits_no_longer_than_it_is_told_to(isrflow: Isrflow, starting: dict[int, int]) -> None:
    arguments = ("topics", "create", "clicks", "--partitions", "1", "--replication-factor", "2")
    done = isrflow(*arguments, "--timeout-ms", "600")
    assert (done.exit_code, "INVALID_REPLICATION_FACTOR" in done.stderr) == (1, True)


def test_it_does_not_wait_for_what_no_broker_could_change(isrflow: Isrflow, starting: dict[int, int]) -> None:
    done = isrflow("topics", "create", "clicks", "--partitions", "1", "--replication-factor", "3")
    assert done.exit_code == 1
    assert "Waiting" not in done.stderr
