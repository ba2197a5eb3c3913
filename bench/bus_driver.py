"""Play the load on the bus: brokers are events, and the engine runs as users start it."""

import contextlib
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.buses import MakeBus, in_a_file
from bench.events import Asked, isr_requests, one_by_one, places_in, together
from bench.load import ONE_ISR_RUNS, Load, StepName, Took, creations, median_of
from bench.machine import Meter, idle
from bus.image import read_image
from bus.open_bus import open_bus
from state.level import NEWEST_LEVEL
from tests.support.engine import Engine, decided, encoded
from tests.support.waiting import wait_until

DECIDE_TIMEOUT_S = 1_200.0
PUBLISHED_AT_ONCE = 5_000
_POLL_S = 0.005
_ALL = 2**31
_COUNTED_AT_ONCE = 50_000


class Heartbeats(threading.Thread):
    """The thread that sends heartbeats for the brokers in ``alive``; ``beat_s`` has the time of each broker's last."""

    def __init__(self, bus_url: str, epochs: dict[int, int], interval_s: float) -> None:
        super().__init__(name="heartbeats", daemon=True)
        self.alive = set(epochs)
        self.beat_s = dict.fromkeys(epochs, time.monotonic())
        self._bus_url = bus_url
        self._epochs = epochs
        self._interval_s = interval_s
        self._stopping = threading.Event()

    def run(self) -> None:
        bus = open_bus(self._bus_url)
        try:
            while not self._stopping.wait(self._interval_s):
                beating = sorted(self.alive)
                bus.publish([beat(broker, self._epochs[broker]) for broker in beating])
                self.beat_s |= dict.fromkeys(beating, time.monotonic())
        finally:
            bus.close()

    def stop(self) -> None:
        self._stopping.set()
        self.join()


def beat(broker: int, broker_epoch: int, *, want_fence: bool = False, want_shutdown: bool = False) -> bytes:
    """Write a heartbeat."""
    return encoded(
        "broker_heartbeat",
        broker=broker,
        broker_epoch=broker_epoch,
        want_fence=want_fence,
        want_shutdown=want_shutdown,
    )


class BusDriver:
    """The engine in ``folder``, with ``settings``."""

    def __init__(
        self,
        folder: Path,
        load: Load,
        settings: Sequence[str],
        make_bus: MakeBus = in_a_file,
        passes_over: frozenset[StepName] = frozenset(),
    ) -> None:
        self.passes_over = passes_over
        self._make_bus = make_bus
        self._held = contextlib.ExitStack()
        self._folder = folder
        self._load = load
        self._settings = settings
        self._gone = 0
        # The log end that was last reported, the same for every replica.
        self._end = 0
        self._engine: Engine | None = None

    def start(self) -> None:
        try:
            self._url = self._held.enter_context(self._make_bus(self._folder))
            self.bus = open_bus(self._url)
            self._held.callback(self.bus.close)
            self.start_engine()
            self._join()
        except BaseException:
            self.kill_engine()
            self._held.close()
            raise

    def start_engine(self) -> None:
        """Start the engine, and wait for its first decision."""
        self._engine = Engine(self._folder, f"bus={self._url}", *self._settings)
        self._engine.wait_ready(self.bus)

    def kill_engine(self) -> None:
        if self._engine is not None:
            self._engine.kill()

    def _join(self) -> None:
        registered = [encoded("broker_register", broker=b, incarnation=f"i{b}") for b in self._load.everyone]
        last = self.bus.publish(registered)
        # One publication has consecutive places.
        self.epochs = {b: last - (self._load.brokers - b) for b in self._load.everyone}
        self.beats = Heartbeats(self._url, self.epochs, self._load.heartbeat_ms / 1_000)
        beats = [beat(*one) for one in self.epochs.items()]
        self._decided(self.bus.publish([*beats, encoded("raise_level", level=NEWEST_LEVEL)]))
        self.beats.start()

    def stop(self) -> None:
        self.beats.stop()
        self.kill_engine()
        self._held.close()

    def play(self, step: StepName) -> Took:
        match step:
            case "create":
                return self._played(self._creations())
            case "idle":
                return idle(self.pids, self._load.idle_s)
            case "shrink ISRs":
                return self._played(self._requests(self._alterations(joining=False)[: self._load.storm]))
            case "expand ISRs":
                return self._played(self._requests(self._alterations(joining=True)[: self._load.storm]))
            case "one ISR":
                return self._one_by_one(self._alterations(joining=False)[:: self._load.partitions_per_topic])
            case "lose":
                return self._lost(self._load.victim)
            case "return":
                took = self._played([beat(self._gone, self.epochs[self._gone])])
                self.beats.alive.add(self._gone)
                return took
            case "fence":
                self._leaves(self._load.fenced)
                return self._played([beat(self._gone, self.epochs[self._gone], want_fence=True)])
            case "shut down":
                self._leaves(self._load.shut_down)
                return self._played([beat(self._gone, self.epochs[self._gone], want_shutdown=True)])
            case "offsets" | "offsets one by one":
                return self._offsets(step)
            case "restart":
                return self._restarted()

    def _leaves(self, broker: int) -> None:
        self._gone = broker
        self.beats.alive.discard(broker)

    def _played(self, events: Sequence[bytes]) -> Took:
        """Publish events, and wait until the last of them is decided."""
        before, meter = self.bus.decided_seq(), Meter(self.pids)
        began_s = time.monotonic()
        last = self._published(events)
        self._decided(last)
        wall_s = time.monotonic() - began_s
        return Took(wall_s=wall_s, cpu_s=meter.spent_s(), changes=self._changes(before, last))

    def _published(self, events: Sequence[bytes]) -> int:
        last = self.bus.decided_seq()
        for first in range(0, len(events), PUBLISHED_AT_ONCE):
            last = self.bus.publish(events[first : first + PUBLISHED_AT_ONCE])
        return last

    def _one_by_one(self, asked: Sequence[Asked]) -> Took:
        """Change ISRs on an idle engine, each after the decision on the one before; return the median."""
        took = [self._played(self._requests([one])) for one in asked[:ONE_ISR_RUNS]]
        return median_of(took)

    def _offsets(self, step: StepName) -> Took:
        """Report where all logs of some partitions end, and wait for the tick after it, which moves the watermarks."""
        places = list(places_in(read_image(self.bus.image()).topics, self._load.reporting))
        is_single = step == "offsets one by one"
        self._end += 1
        end = self._end
        reports = one_by_one(places, end, encoded) if is_single else together(places, end, self.epochs, encoded)
        before, meter = self.bus.decided_seq(), Meter(self.pids)
        began_s = time.monotonic()
        last = self._published(reports)
        wait_until(lambda: self._has_ticked(last), "the tick after the reports", DECIDE_TIMEOUT_S)
        wall_s, cpu_s = time.monotonic() - began_s, meter.spent_s()
        told = self._count(before, self.bus.decided_seq(), b'"kind":"high_watermark"')
        if told < len(places):
            raise AssertionError(f"{told} of {len(places)} high watermarks moved")
        return Took(wall_s=wall_s, cpu_s=cpu_s, changes=self._load.reports)

    def _has_ticked(self, after: int) -> bool:
        return any(b'"tick"' in one.raw for one in self.bus.read(after, self.bus.decided_seq()))

    def _restarted(self) -> Took:
        """Kill the engine and start it again, and time it from the kill to the first decision."""
        self.kill_engine()
        began_s = time.monotonic()
        self.start_engine()
        wall_s = time.monotonic() - began_s
        return Took(wall_s=wall_s, cpu_s=Meter(self.pids, from_start=True).spent_s(), changes=1)

    def _lost(self, broker: int) -> Took:
        """Let a broker's session end, and time from the tick that fences it to the last decision."""
        before = self.bus.decided_seq()
        self._leaves(broker)
        ends_s = self.beats.beat_s[broker] + self._load.session_ms / 1_000
        time.sleep(max(0.0, ends_s - time.monotonic()))
        meter = Meter(self.pids)
        deadline_s = time.monotonic() + DECIDE_TIMEOUT_S
        while not (found := self.bus.decisions((before, _ALL), 1)):
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"broker {broker} was not fenced")
            time.sleep(_POLL_S)
        done_s, done_ms = time.monotonic(), time.time() * 1_000
        spent_s = meter.spent_s()
        [tick] = self.bus.read(found[0].seq - 1, found[0].seq)
        assert tick.entered_ms is not None
        changes = self._changes(before, found[0].seq)
        return Took(
            wall_s=(done_ms - tick.entered_ms) / 1_000, cpu_s=spent_s, changes=changes, session_end_s=done_s - ends_s
        )

    def _decided(self, seq: int) -> None:
        decided(self.bus, seq, DECIDE_TIMEOUT_S, self._engine)

    @property
    def pids(self) -> list[int]:
        return [] if self._engine is None else [self._engine.process.pid]

    def _changes(self, after: int, through: int) -> int:
        """Count the partitions' decisions between two events."""
        return self._count(after, through, b'"kind":"leader_and_isr"')

    def _count(self, after: int, through: int, kind: bytes) -> int:
        place, count = (after, _ALL), 0
        while found := [one for one in self.bus.decisions(place, _COUNTED_AT_ONCE) if one.seq <= through]:
            count += sum(kind in one.body for one in found)
            place = (found[-1].seq, found[-1].idx)
        return count

    def _creations(self) -> list[bytes]:
        return [encoded("create_topic", **fields) for fields in creations(self._load)]

    def _alterations(self, *, joining: bool) -> list[Asked]:
        """List the ISR changes that leaders request when the straggler leaves their ISRs, or joins them again."""
        straggler = self._load.straggler
        return [
            Asked(topic.topic, held, tuple(b for b in held.isr if b != straggler) + (straggler,) * joining)
            for topic in read_image(self.bus.image()).topics
            for held in topic.partitions
            if straggler in held.replicas and held.leader != straggler and (straggler in held.isr) != joining
        ]

    def _requests(self, asked: Sequence[Asked]) -> list[bytes]:
        return isr_requests(asked, self.epochs, encoded)
