"""A standby takes over when the engine that decides dies or stops, and at no other time."""

import signal
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from tests.streaming.feeding import crashing
from tests.support.engine import STANDBY, START_TIMEOUT_S, Engine, by_rules, decided, decisions_of
from tests.support.random_logs import seeded
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

# Killed in the batch that SIGUSR1 names: Spark has committed its state, and the bus has no decisions of it.
CRASHING = crashing("output", 1_000_000)
DIED = "because the active engine has died"


def stands_by(engine: Engine) -> bool:
    assert engine.process.poll() is None, engine.log.read_text()
    return "standing by" in engine.log.read_text()


def test_a_standby_takes_over_from_a_killed_engine_in_mid_batch_and_from_one_that_stops(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    log = [raw for _, raw in seeded(seed=12, count=600)]
    active = Engine(tmp_path, command=CRASHING)
    # The timeout never passes, so a standby takes over only if it knows that the active engine died or stops.
    one, other = standbys = [
        Engine(tmp_path, "controller.standby.timeout.ms=3600000", command=STANDBY, log=tmp_path / f"{name}.log")
        for name in ("one", "other")
    ]
    try:
        decided(bus, bus.publish_own(log[:200]), engine=active)
        wait_until(lambda: stands_by(one) and stands_by(other), "both standbys", START_TIMEOUT_S)
        assert bus.claimed_epoch() == 1
        active.process.send_signal(signal.SIGUSR1)
        active.wait()
        decided(bus, bus.publish_own(log[200:400]), engine=one)
        assert bus.claimed_epoch() == 2
        first, second = standbys if "claimed the controller" in one.log.read_text() else (other, one)
        assert DIED in first.log.read_text()
        assert stands_by(second)
        assert first.stop() == 0
        decided(bus, bus.publish_own(log[400:]), engine=second)
        assert second.stop() == 0
        assert "because nobody decides" in second.log.read_text()
    finally:
        for engine in (active, *standbys):
            engine.kill()
    # The batch that was cut off was repeated on the checkpoint of the killed engine.
    for engine in standbys:
        assert "moved the checkpoint aside" not in engine.log.read_text()
    assert (bus.claimed_epoch(), bus.resigned_epoch()) == (3, 3)
    expected = by_rules(bus)
    assert decisions_of(bus) == expected.decisions
    assert view_of_image(bus.image()) == expected.view()
    bus.close()
