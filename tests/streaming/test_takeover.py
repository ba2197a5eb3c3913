"""One job decides at a time, whatever starts, stops, dies, freezes or is lost. The other one stops, and logs why.

The tests share a bus, and each takes over the engine that decides from the test before it: to start one takes seconds
of CPU time. A test that runs alone starts its own. After each of them the whole decision log is what the rules decide.
So a kill between any two writes of a micro-batch neither repeats nor loses a decision.
"""

import json
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from brokers.launch.ports import free_ports
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import Entry, Image
from controller_logic.replay import decide
from state.policy import Policy
from tests.streaming.feeding import crash, crashing
from tests.support.bus_rows import mark_of
from tests.support.engine import AWAITED, ISRFLOW, STANDBY, START_TIMEOUT_S, Engine, decided, decisions_of
from tests.support.random_logs import seeded
from tests.support.trimming import trim
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

UNREACHABLE = 3
SUPERSEDED = 4
RUN = (str(ISRFLOW), "run")
RESHARD = (*RUN, "--reshard")
POINTS = ("offsets", "state", "commit", "next")
# A standby takes over from an engine that is killed there.
LAST_POINT = "output"
DIED = "because the active engine has died"
MOVED_ASIDE = "moved the checkpoint aside"
RESHARDED = "laid the state out again"
EVENTS_AT_ONCE = 100
EVENTS = 20 * EVENTS_AT_ONCE


class Relay:
    """A bus, and the engines that decide on it one after another; ``active`` is the one that decides."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bus = EmbeddedBus(directory / "bus.db")
        self.checkpoint = directory / "checkpoint"
        self.metrics = f"metrics.port={free_ports(1)[0]}"
        self.active: Engine | None = None
        self._armed = directory / "armed"
        self._log = [raw for _, raw in seeded(seed=5, count=EVENTS)]
        self._engines: list[Engine] = []
        # What was on the bus before older events were removed.
        self._events: list[Entry] = []
        self._decisions: list[tuple[int, int, bytes]] = []

    def start(self, *settings: str, command: tuple[str, ...] = RUN) -> Engine:
        """Start an engine that logs JSON lines to a file of its own."""
        log = self.directory / f"engine-{len(self._engines)}.log"
        engine = Engine(self.directory, "log.format=json", *settings, command=command, log=log)
        self._engines.append(engine)
        return engine

    def decide(self, engine: Engine) -> None:
        """Publish more events of a random log, and wait until they are decided. From then on ``engine`` is active."""
        decided(self.bus, self.bus.publish_own(self._more()), engine=engine)
        self.active = engine

    def crashing(self, point: str) -> tuple[str, ...]:
        """Return the command of an engine that ``crash`` kills at ``point``."""
        return crashing(point, self._armed)

    def crash(self, point: str) -> None:
        """Have the engine that decides die at ``point`` of its next batch, with its JVM."""
        crash(self.deciding(command=self.crashing(point)), self.bus, self._armed, self._more())
        assert_died_at(point, self.checkpoint, self.bus)

    def _more(self) -> list[bytes]:
        some, self._log = self._log[:EVENTS_AT_ONCE], self._log[EVENTS_AT_ONCE:]
        assert some, "there are enough events for all"
        return some

    def deciding(self, *settings: str, command: tuple[str, ...] = RUN) -> Engine:
        """Return the engine that decides. Start one if there is none: the last one died, or a test runs alone."""
        if self.active is None or self.active.process.poll() is not None:
            self.decide(self.start(*settings, command=command))
        assert self.active is not None
        return self.active

    def trim(self) -> int:
        """Remove the events that the checkpoint has passed, and return the last of them."""
        self._events, self._decisions = list(self.bus.read(0, self.bus.decided_seq())), decisions_of(self.bus)
        return trim(self.bus, 0)

    def check_whole_log(self) -> None:
        """Check that the bus has what the rules decide: nothing twice, and nothing missing."""
        # Not while the engine decides, which it still does at times.
        read, written, image = wait_until(self._at_one_time, "the bus to be read between two batches")
        expected = decide([*self._events, *read], Policy())
        assert written == expected.decisions[-len(written) :]
        assert self._decisions == expected.decisions[: len(self._decisions)]
        assert len(self._decisions) + len(written) >= len(expected.decisions)
        assert view_of_image(image) == expected.view()
        epochs = [msgspec.json.decode(body)["controller_epoch"] for _, _, body in written]
        assert epochs == sorted(epochs)
        assert max(epochs) == self.bus.claimed_epoch()

    def _at_one_time(self) -> tuple[list[Entry], list[tuple[int, int, bytes]], Image] | None:
        """Return the events, the decisions and the state; None if a batch was decided meanwhile."""
        through = self.bus.decided_seq()
        read = list(self.bus.read(self._events[-1].seq if self._events else 0, through))
        found = read, decisions_of(self.bus), self.bus.image()
        return found if self.bus.decided_seq() == through else None

    def lose_bus(self) -> None:
        """Move the bus's files, and read them in their new place from now on."""
        self.bus.close()
        for ending in ("", "-wal", "-shm"):
            (self.directory / f"bus.db{ending}").rename(self.directory / f"moved.db{ending}")

    def find_bus(self) -> None:
        self.bus = EmbeddedBus(self.directory / "moved.db")

    def end(self) -> None:
        for engine in self._engines:
            engine.kill()
        self.bus.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Relay]:
    relay = Relay(tmp_path_factory.mktemp("relay"))
    yield relay
    relay.end()


@pytest.fixture
def relay(shared: Relay) -> Iterator[Relay]:
    yield shared
    shared.check_whole_log()


def said(engine: Engine) -> str:
    return engine.log.read_text()


def assert_ended(engine: Engine, code: int) -> list[dict[str, object]]:
    """Check that an engine ends with ``code`` as planned, which must not look like a crash. Return its log.

    That is JSON, also what its JVM and Pythons wrote.
    """
    assert engine.wait() == code
    assert "Traceback" not in said(engine)
    lines = [json.loads(line) for line in said(engine).splitlines()]
    assert not any(str(line["event"]).startswith("\tat ") for line in lines)
    assert not any("Python worker" in str(line["event"]) or "incubator" in str(line["event"]) for line in lines)
    assert [line["exit_code"] for line in lines if "exit_code" in line] == [code] * bool(code)
    return lines


def assert_died_at(point: str, checkpoint: Path, bus: EmbeddedBus) -> None:
    """Check that the killed batch wrote what comes before ``point``, and nothing after it."""
    begun = max(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    ended = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    through = json.loads((checkpoint / "offsets" / str(begun)).read_text().splitlines()[-1])["seq"]
    if point == "next":
        # The next batch may have begun, because the source hears of a commit while that batch is being planned.
        assert begun - ended in (0, 1)
    else:
        assert begun - ended == 1, point
        assert (bus.decided_seq() == through) == (point == "commit"), point


def epochs_in(lines: list[dict[str, object]]) -> list[object]:
    return [line["controller_epoch"] for line in lines if line["event"] in ("started", "deciding")]


def stands_by(engine: Engine) -> bool:
    assert engine.process.poll() is None, said(engine)
    return "standing by" in said(engine)


def test_one_of_two_jobs_started_at_once_decides(relay: Relay) -> None:
    jobs = [relay.start(command=relay.crashing(POINTS[0])) for _ in range(2)]
    wait_until(lambda: any(job.process.poll() is not None for job in jobs), "one of them to give way")
    gave_way, decides = sorted(jobs, key=lambda job: job.process.poll() is None)
    assert_ended(gave_way, SUPERSEDED)
    relay.decide(decides)


def test_a_job_killed_at_each_commit_point_leaves_one_whole_decision_log(relay: Relay) -> None:
    for point, next_point in pairwise((*POINTS, LAST_POINT)):
        relay.crash(point)
        successor = relay.deciding(command=relay.crashing(next_point))
        # It has repeated the batch that was cut off, on its predecessor's checkpoint.
        assert MOVED_ASIDE not in said(successor)
    assert len(decisions_of(relay.bus)) > 300


def test_a_standby_takes_over_from_a_killed_engine_in_mid_batch_and_from_one_that_stops(relay: Relay) -> None:
    relay.deciding(command=relay.crashing(LAST_POINT))
    bus = relay.bus
    epoch = bus.claimed_epoch()
    # The timeout never passes, so a standby takes over only if it knows that the active engine died or stops.
    one, other = standbys = [relay.start("controller.standby.timeout.ms=3600000", command=STANDBY) for _ in range(2)]
    wait_until(lambda: stands_by(one) and stands_by(other), "both standbys", START_TIMEOUT_S)
    assert bus.claimed_epoch() == epoch
    relay.crash(LAST_POINT)
    relay.decide(one)
    assert bus.claimed_epoch() == epoch + 1
    first, second = standbys if "claimed the controller" in said(one) else (other, one)
    assert DIED in said(first)
    assert stands_by(second)
    assert first.stop() == 0
    assert bus.resigned_epoch() == epoch + 1
    relay.decide(second)
    assert "because nobody decides" in said(second)
    assert bus.claimed_epoch() == epoch + 2
    # The batch that was cut off was repeated on the checkpoint of the killed engine.
    for engine in standbys:
        assert MOVED_ASIDE not in said(engine)


def test_a_second_job_takes_over_with_other_shards_and_the_first_stops(relay: Relay) -> None:
    first = relay.deciding()
    epoch = relay.bus.claimed_epoch()
    second = relay.start("shards=5", "pages=3", relay.metrics, command=RESHARD)
    assert epochs_in(assert_ended(first, SUPERSEDED)) == [epoch, epoch]
    assert f"another job claimed controller epoch {epoch + 1}" in said(first)
    relay.decide(second)
    assert RESHARDED in said(second)


def test_a_frozen_job_does_not_delay_its_successor_and_writes_nothing_after_it(relay: Relay) -> None:
    frozen, epoch = relay.deciding(relay.metrics), relay.bus.claimed_epoch()
    frozen.freeze(relay.bus.path)
    # After the test before this one, the frozen job has other shards.
    second = relay.start("takeover.timeout.ms=1000", relay.metrics, command=RESHARD)
    relay.decide(second)
    assert "the metrics port is not free" in said(second)
    frozen.signal_all(signal.SIGCONT)
    assert epochs_in(assert_ended(frozen, SUPERSEDED)) == [epoch, epoch]
    decided(relay.bus, relay.bus.publish([AWAITED]), engine=second)
    wait_until(lambda: "serving metrics" in said(second), "the second one's metrics")


def test_without_a_usable_checkpoint_the_job_continues_from_the_state_on_the_bus(relay: Relay) -> None:
    bus, engine = relay.bus, relay.deciding()
    assert engine.stop() == 0
    assert_ended(engine, 0)
    end, epoch = bus.decided_seq(), bus.claimed_epoch()
    relay.checkpoint.rename(relay.directory / "lost")
    engine = relay.start()
    wait_until(lambda: bus.claimed_epoch() == epoch + 1, "the claim")
    relay.decide(engine)
    wait_until(lambda: mark_of(bus.path, "passed") > end, "the batch after")
    assert engine.stop() == 0
    assert MOVED_ASIDE not in said(engine)
    # The first job's checkpoint is now behind, and the events that it would read next were removed.
    relay.checkpoint.rename(relay.directory / "used")
    (relay.directory / "lost").rename(relay.checkpoint)
    assert relay.trim() > end
    engine = relay.start()
    relay.decide(engine)
    assert MOVED_ASIDE in said(engine)


def test_a_lost_bus_stops_the_job(relay: Relay) -> None:
    engine, epoch = relay.deciding(), relay.bus.claimed_epoch()
    relay.lose_bus()
    try:
        assert epochs_in(assert_ended(engine, UNREACHABLE)) == [epoch, epoch]
    finally:
        relay.find_bus()
