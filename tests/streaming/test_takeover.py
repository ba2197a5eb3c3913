"""One job decides at a time: when a second one takes over, the first stops by itself and logs why."""

import json
import signal
from pathlib import Path

import msgspec
import pytest

from brokers.launch.ports import free_ports
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from controller_logic.replay import decide
from state.policy import Policy
from tests.support.bus_rows import mark_of
from tests.support.engine import AWAITED, Engine, by_rules, decided, decisions_of
from tests.support.random_logs import seeded
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

UNREACHABLE = 3
SUPERSEDED = 4


def assert_no_stacks(engine: Engine) -> None:
    """Check that a planned end is explained in one line and does not look like a crash."""
    said = engine.log.read_text()
    assert "Traceback" not in said
    assert "\n\tat " not in said


def controller_epochs(bus: EmbeddedBus) -> list[int]:
    """List the controller epochs in the decision log, each once; decisions before the first claim have none."""
    epochs = [msgspec.json.decode(body)["controller_epoch"] for _, _, body in decisions_of(bus)]
    return [epoch for epoch in dict.fromkeys(epochs) if epoch]


def test_a_second_job_takes_over_and_the_first_stops_and_a_lost_bus_stops_the_second(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    log = [raw for _, raw in seeded(seed=5, count=300)]
    first = Engine(tmp_path, "log.format=json")
    second = None
    try:
        first.wait_ready(bus)
        decided(bus, bus.publish_own(log[:150]), engine=first)
        second = Engine(tmp_path, "log.format=json")
        assert first.wait() == SUPERSEDED
        assert "another job claimed controller epoch 2" in first.log.read_text()
        decided(bus, bus.publish_own(log[150:]), engine=second)
        bus.close()
        for ending in ("", "-wal", "-shm"):
            (tmp_path / f"bus.db{ending}").rename(tmp_path / f"moved.db{ending}")
        assert second.wait() == UNREACHABLE
        assert_no_stacks(second)
        # The log of both, with what their JVMs and Pythons wrote.
        said = [json.loads(line) for line in second.log.read_text().splitlines()]
        assert [line["controller_epoch"] for line in said if line["event"] in ("started", "deciding")] == [1, 1, 2, 2]
        assert [line["exit_code"] for line in said if "exit_code" in line] == [SUPERSEDED, UNREACHABLE]
    finally:
        for engine in filter(None, (first, second)):
            engine.kill()
    bus = EmbeddedBus(tmp_path / "moved.db")
    expected = by_rules(bus)
    assert decisions_of(bus) == expected.decisions
    assert view_of_image(bus.image()) == expected.view()
    assert [epoch for epoch in controller_epochs(bus) if epoch] == [1, 2]
    bus.close()


def test_one_of_two_jobs_started_at_once_decides(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    log = [raw for _, raw in seeded(seed=7, count=200)]
    jobs = [Engine(tmp_path), Engine(tmp_path, log=tmp_path / "other.log")]
    try:
        wait_until(lambda: any(job.process.poll() is not None for job in jobs), "one of them to give way")
        gave_way, decides = sorted(jobs, key=lambda job: job.process.poll() is None)
        assert gave_way.wait() == SUPERSEDED
        assert_no_stacks(gave_way)
        decided(bus, bus.publish_own(log), engine=decides)
        assert decides.stop() == 0
    finally:
        for job in jobs:
            job.kill()
    expected = by_rules(bus)
    assert decisions_of(bus) == expected.decisions
    assert view_of_image(bus.image()) == expected.view()
    bus.close()


def test_a_frozen_job_does_not_delay_its_successor_and_writes_nothing_after_it(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    log = [raw for _, raw in seeded(seed=6, count=200)]
    (port,) = free_ports(1)
    frozen = Engine(tmp_path, f"metrics.port={port}")
    second = None
    try:
        frozen.wait_ready(bus)
        decided(bus, bus.publish_own(log[:100]), engine=frozen)
        frozen.freeze(tmp_path / "bus.db")
        second = Engine(tmp_path, "takeover.timeout.ms=1000", f"metrics.port={port}")
        decided(bus, bus.publish_own(log[100:]), engine=second)
        assert "the metrics port is not free" in second.log.read_text()
        frozen.signal_all(signal.SIGCONT)
        assert frozen.wait() == SUPERSEDED
        decided(bus, bus.publish([AWAITED]), engine=second)
        wait_until(lambda: second.log.read_text().count("serving metrics") == 2, "the second one's metrics")
        assert second.stop() == 0
        assert_no_stacks(second)
    finally:
        for engine in filter(None, (frozen, second)):
            engine.kill()
    expected = by_rules(bus)
    assert decisions_of(bus) == expected.decisions
    bus.close()


def test_without_a_usable_checkpoint_the_job_continues_from_the_state_on_the_bus(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    log = [raw for _, raw in seeded(seed=9, count=400)]
    engine = Engine(tmp_path)
    try:
        decided(bus, bus.publish_own(log[:200]), engine=engine)
        assert engine.stop() == 0
        (tmp_path / "checkpoint").rename(tmp_path / "lost")
        engine = Engine(tmp_path)
        wait_until(lambda: bus.claimed_epoch() == 2, "the second job's claim")
        decided(bus, bus.publish_own(log[200:300]), engine=engine)
        wait_until(lambda: mark_of(bus.path, "passed") > 200, "the batch after")
        assert engine.stop() == 0
        assert "moved the checkpoint aside" not in engine.log.read_text()
        # The first job's checkpoint is now behind, and the events that it would read next were removed.
        (tmp_path / "checkpoint").rename(tmp_path / "used")
        (tmp_path / "lost").rename(tmp_path / "checkpoint")
        events, decisions = bus.read(0, bus.decided_seq()), decisions_of(bus)
        assert bus.trim(0) > 200
        engine = Engine(tmp_path)
        decided(bus, bus.publish_own(log[300:]), engine=engine)
        assert engine.stop() == 0
        assert "moved the checkpoint aside" in engine.log.read_text()
    finally:
        engine.kill()
    expected = decide([*events, *bus.read(events[-1].seq, bus.decided_seq())], Policy())
    written = decisions_of(bus)
    assert written == expected.decisions[-len(written) :]
    assert decisions == expected.decisions[: len(decisions)]
    assert len(decisions) + len(written) >= len(expected.decisions)
    assert view_of_image(bus.image()) == expected.view()
    bus.close()
