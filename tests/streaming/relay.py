"""Engines that decide on one bus one after another, and the random log that they get."""

import json
import signal
from pathlib import Path

import msgspec

from brokers.launch.ports import free_ports
from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import Entry, Image
from controller_logic.replay import decide
from state.policy import Policy
from tests.streaming.feeding import crash, crashing
from tests.support.engine import RUN, Engine, decided, decisions_of
from tests.support.random_logs import seeded
from tests.support.trimming import trim
from tests.support.waiting import wait_until

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

    def freeze(self, engine: Engine) -> None:
        """Freeze the engine that decides between two batches.

        In a batch Spark would miss its files when it goes on, because the successor moves the checkpoint aside.
        """

        def is_between() -> bool:
            engine.freeze(self.bus.path)
            if newest(self.checkpoint / "offsets") == newest(self.checkpoint / "commits"):
                return True
            engine.signal_all(signal.SIGCONT)
            return False

        wait_until(is_between, "the end of a batch")

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


def assert_died_at(point: str, checkpoint: Path, bus: EmbeddedBus) -> None:
    """Check that the killed batch wrote what comes before ``point``, and nothing after it."""
    begun, ended = newest(checkpoint / "offsets"), newest(checkpoint / "commits")
    through = json.loads((checkpoint / "offsets" / str(begun)).read_text().splitlines()[-1])["seq"]
    if point == "next":
        # The next batch may have begun, because the source hears of a commit while that batch is being planned.
        assert begun - ended in (0, 1)
    else:
        assert begun - ended == 1, point
        assert (bus.decided_seq() == through) == (point == "commit"), point


def newest(log: Path) -> int:
    """Return the newest batch in a log of the checkpoint, -1 if there is none."""
    return max((int(path.name) for path in log.glob("[0-9]*")), default=-1)
