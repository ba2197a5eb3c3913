"""The job on a real Kafka: killed inside its transaction and after it, frozen and superseded, it writes once."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.launch.kafka.cluster import KafkaCluster
from bus.image import view_of_image
from bus.interface import Bus
from bus.kafka.bus import KafkaBus
from conf.settings import Settings
from streaming.checkpoint import has_batches, settle
from tests.streaming.feeding import assert_as_by_rules, crash, crashing, random_events
from tests.support.engine import AWAITED, STANDBY, START_TIMEOUT_S, Engine, decided, decisions_of, encoded
from tests.support.scrape import metrics_url, scrape
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.kafka_bus]

MOVED_ASIDE = "moved the checkpoint aside"
POINTS = ("transaction", "commit")
EVENTS_AT_ONCE = 100
# On Kafka each tick is a batch. A standby waits for two ticks, so there are some.
FEW_TICKS = "tick.idle.interval.ms=1900"
SUPERSEDED = 4
# Longer than a session in Kafka's own controller, so that the node leads in another epoch afterwards.
BUS_FROZEN_S = 12.0
ENGINE_FROZEN_S = 4.0


@pytest.fixture
def bus(kafka_url: str) -> Iterator[KafkaBus]:
    bus = KafkaBus(kafka_url)
    yield bus
    bus.close()


def test_a_job_that_is_killed_superseded_or_cut_off_leaves_one_whole_decision_log(
    bus: KafkaBus, kafka_node: KafkaCluster, tmp_path: Path
) -> None:
    log = random_events(seed=11, count=8 * EVENTS_AT_ONCE)
    parts = iter([log[at : at + EVENTS_AT_ONCE] for at in range(0, len(log), EVENTS_AT_ONCE)])
    place, armed = f"bus={bus.address}", tmp_path / "armed"
    for point in POINTS:
        killed = Engine(tmp_path, place, FEW_TICKS, command=crashing(point, armed))
        try:
            decided(bus, bus.publish_own(next(parts)), engine=killed)
            crash(killed, bus, armed, next(parts))
        finally:
            killed.kill()
    frozen = Engine(tmp_path, place, FEW_TICKS)
    second = None
    try:
        decided(bus, bus.publish_own(next(parts)), engine=frozen)
        frozen.stand_still()
        # Sessions that outlast a busy machine, because a fenced broker's reports are refused.
        sets = (place, FEW_TICKS, "takeover.timeout.ms=1000", "broker.session.timeout.ms=120000")
        second = Engine(tmp_path, *sets, command=STANDBY)
        decided(bus, bus.publish_own(next(parts)), engine=second)
        frozen.signal_all(signal.SIGCONT)
        assert frozen.wait() == SUPERSEDED
        assert "controller epoch 4" in frozen.log.read_text()
        assert "taking over, because the active engine is silent" in second.log.read_text()
        decided(bus, bus.publish([AWAITED]), engine=second)
        watermark_follows_offsets(bus, second)
        what_is_asked_of_a_frozen_job_is_not_done_late(bus, second)
        for node in kafka_node.nodes.values():
            node.pause()
            time.sleep(BUS_FROZEN_S)
            node.resume()
        decided(bus, bus.publish([AWAITED]), engine=second)
        assert second.stop() == 0
    finally:
        for engine in filter(None, (frozen, second)):
            engine.kill()
    # Each engine continued from its predecessor's checkpoint.
    assert MOVED_ASIDE not in second.log.read_text()
    assert_as_by_rules(bus)


def test_a_standby_that_followed_the_state_on_its_own_checkpoint_decides_and_may_be_killed_at_any_point(
    bus: KafkaBus, tmp_path: Path
) -> None:
    """Two directories stand for two machines, which share only the bus."""
    log = random_events(seed=12, count=5 * EVENTS_AT_ONCE)
    parts = iter([log[at : at + EVENTS_AT_ONCE] for at in range(0, len(log), EVENTS_AT_ONCE)])
    place, armed = f"bus={bus.address}", tmp_path / "armed"
    here, there = tmp_path / "here", tmp_path / "there"
    engines: list[Engine] = []

    def start(directory: Path, command: tuple[str, ...] = STANDBY) -> Engine:
        directory.mkdir(exist_ok=True)
        log = tmp_path / f"engine-{len(engines)}.log"
        engines.append(Engine(directory, place, FEW_TICKS, "metrics.port=0", command=command, log=log))
        return engines[-1]

    try:
        active = start(here)
        decided(bus, bus.publish_own(next(parts)), engine=active)
        killed = start(there, command=(*crashing("transaction", armed), "--standby"))
        follows(killed)
        decided(bus, bus.publish_own(next(parts)), engine=active)
        active.kill()
        # It dies in the transaction of its first batch, or of the next one if that has no decisions.
        crash(killed, bus, armed, next(parts))
        assert "claimed the controller" in killed.log.read_text()
        # Its checkpoint does not tell how the state came about.
        second = start(there)
        decided(bus, bus.publish_own(next(parts)), engine=second)
        assert MOVED_ASIDE in second.log.read_text()
        third = start(here)
        follows(third)
        second.kill()
        decided(bus, bus.publish_own(next(parts)), engine=third)
        assert scrape(metrics_url(third.log))["isrflow_controller_standby_following"] == 0
        assert third.log.read_text().count(MOVED_ASIDE) == 1, "only the first engine's checkpoint, before it followed"
        assert third.stop() == 0
    finally:
        for engine in engines:
            engine.kill()
    # Its checkpoint is as good as any engine's.
    settle(here / "checkpoint", bus, Settings().shuffle_partitions)
    assert has_batches(here / "checkpoint")
    assert_as_by_rules(bus)


def follows(standby: Engine) -> None:
    """Wait until a standby has taken in the state."""
    wait_until(lambda: "following the state" in standby.log.read_text(), "a standby that follows", START_TIMEOUT_S)
    commits = standby.directory / "checkpoint" / "commits"
    wait_until(lambda: list(commits.glob("[0-9]*")), "a batch of pages", START_TIMEOUT_S)
    assert scrape(metrics_url(standby.log))["isrflow_controller_standby_following"] == 1


def watermark_follows_offsets(bus: KafkaBus, engine: Engine) -> None:
    """Check that the log end of a partition's only replica is its high watermark a tick later."""
    epoch = bus.publish([encoded("broker_register", broker=901, incarnation="a")])
    beat = encoded("broker_heartbeat", broker=901, broker_epoch=epoch, want_fence=False, want_shutdown=False)
    seq = bus.publish_own([beat, encoded("tick"), encoded("create_topic", topic="reported", assignment={"0": [901]})])
    decided(bus, seq, engine=engine)
    for end in (42, 50):
        report = {"topic": "reported", "partition": 0, "broker": 901, "leader_epoch": 0, "log_end_offset": end}
        bus.publish([encoded("log_end_offset", **report)])
        wait_until(lambda end=end: watermark(bus, "reported") == end, f"high watermark {end}")


def what_is_asked_of_a_frozen_job_is_not_done_late(bus: KafkaBus, engine: Engine) -> None:
    claimed = bus.claimed_epoch()
    engine.stand_still()
    fields = {"topic": "late", "partitions": 1, "replication_factor": 1, "timeout_ms": 1_000}
    seq = bus.publish([encoded("create_topic", request_id="late", **fields)])
    time.sleep(ENGINE_FROZEN_S)
    engine.signal_all(signal.SIGCONT)
    decided(bus, seq, engine=engine)
    assert [b'"error":"REQUEST_TIMED_OUT"' in body for at, _, body in decisions_of(bus) if at == seq] == [True]
    # The job has claimed once more, unless the batch before was slow: then a tick told what waited.
    assert bus.claimed_epoch() <= claimed + 1


def watermark(bus: Bus, topic: str) -> int:
    return next(p["high_watermark"] for p in view_of_image(bus.image())["partitions"] if p["topic"] == topic)
