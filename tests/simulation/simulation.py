"""One history: a cluster on a clock and network of its own, its faults and clients, all drawn from one seed.

Nothing else decides what happens: neither the wall clock, nor objects' addresses, nor the order of a set. So while
the code stays the same, a seed always gives the same history.
"""

import asyncio
import gc
import random
import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from state.events import AnyEvent, TopicPartition
from tests.simulation.broker import SimulatedBroker, gives_up
from tests.simulation.bus import BusLink, SimulatedBus
from tests.simulation.checkers import Checkers
from tests.simulation.client import Client, Consumer, Producer
from tests.simulation.disk import Disk
from tests.simulation.engine import Batch, Engine
from tests.simulation.faults import Faults
from tests.simulation.late import LateEvents
from tests.simulation.network import Network
from tests.simulation.patches import in_place_of_the_machine
from tests.simulation.quiescence import unsettled
from tests.simulation.requests import Requests, raise_level
from tests.simulation.scenery import draw
from tests.simulation.virtual_loop import Process, StuckError, VirtualLoop
from tests.simulation.wall_clocks import WallClocks

STAYS, COMES_AND_GOES = "t", "u"
BROKERS_S, TOPIC_S = 0.6, 1.0
SETTLE_S, SETTLES_MAX = 1.0, 40
ROWS_KEPT = 60
SHARED_MEMORY = Path("/dev/shm")


class Row(NamedTuple):
    """One event of a history."""

    time_s: float
    who: str
    what: str
    more: str

    def __str__(self) -> str:
        return f"{self.time_s:9.4f}  {self.who:<10} {self.what:<22} {self.more}"


class Violated(NamedTuple):
    """A violated invariant, and the evidence."""

    invariant: str
    what: str


class ViolatedError(Exception):
    """A violation, which ends a history because what follows it proves nothing."""


class Simulation:
    """The parts of one history, and its run."""

    def __init__(self, seed: int, machine_crashes: bool = False, tell: Callable[[Row], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.machine_crashes = machine_crashes
        self.rows: deque[Row] = deque(maxlen=ROWS_KEPT)
        self.violated: Violated | None = None
        self.loop = VirtualLoop(self._ran)
        self.network = Network(self.loop, self._random(), 0.1, lambda what: self._violate("crash", what))
        self.clocks = WallClocks(self.loop)
        self.bus = SimulatedBus(self.clocks)
        self.late_events = LateEvents(self.bus, self.loop, random.Random(seed))
        self.checkers = Checkers(self._violate, self.row)
        self.processes: dict[int, Process] = {}
        self.brokers: dict[int, SimulatedBroker] = {}
        self.state: Batch | None = None
        self.sending: list[asyncio.Task[Any]] = []
        self._tell = tell
        self._disk = Disk(self._random())
        self._engine: Process | None = None
        self._clients: list[Client] = []
        self._everybody: list[Any] = []
        self._directory = Path()
        self.scenery = draw(self._random())
        self.checkers.unclean_allowed = self.scenery.unclean
        self.places = [TopicPartition(STAYS, partition) for partition in range(self.scenery.partitions)]
        if self.scenery.comes_and_goes:
            self.places.append(TopicPartition(COMES_AND_GOES, 0))

    def _random(self) -> random.Random:
        return random.Random(self.rng.getrandbits(64))

    def row(self, who: str, what: str, more: str) -> None:
        """Note an event for readers of the history."""
        row = Row(self.loop.now, who, what, more)
        self.rows.append(row)
        if self._tell is not None:
            self._tell(row)

    def _violate(self, invariant: str, what: str) -> None:
        if self.violated is None:
            self.violated = Violated(invariant, what)
            self.row("CHECKER", invariant, what)

    def _ran(self, process: Process) -> None:
        if process.broker is not None:
            self.checkers.look_over(process.broker)
        if self.violated is not None:
            raise ViolatedError

    # The course of a history

    def run(self) -> Violated | None:
        """Run from the creation of the topic to quiescence; return what was violated, if anything."""
        shared = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
        self._directory = Path(tempfile.mkdtemp(prefix="isrflow-simulation-", dir=shared))
        collecting = gc.isenabled()
        gc.disable()  # garbage collection must not matter, and takes time
        try:
            with in_place_of_the_machine(self.loop, self.clocks, self.network, self._disk, self.checkers.brokers):
                try:
                    self._play()
                finally:
                    self.loop.unwind()
        except ViolatedError:
            pass
        except StuckError as error:
            self._violate("end", str(error))
        finally:
            self._close()
            if collecting:
                gc.enable()
        return self.violated

    def _play(self) -> None:
        self.start_engine()
        self._start_brokers()
        self.loop.run_until(BROKERS_S)
        raise_level(self)
        Requests(self, self._random()).create(STAYS, self.scenery.partitions)
        self.loop.run_until(TOPIC_S)
        self._start_clients()
        faults, until_s = Faults(self, self._random()), TOPIC_S + self.scenery.lasts_s
        self.loop.start(Process("faults"), faults.run(until_s))
        self.loop.run_until(until_s)
        self._heal()
        for _ in range(SETTLES_MAX):
            self.loop.run_until(self.loop.now + SETTLE_S)
            found = unsettled(self)
            if found is None:
                return
            self._start_brokers()  # a broker may have been about to end when the faults were over
        self._violate(*found)

    def _start_brokers(self) -> None:
        for broker in self.scenery.brokers:
            self.start_broker(broker)

    def _start_clients(self) -> None:
        brokers, seen = [*self.scenery.brokers], self.checkers.clients
        for number, place in enumerate(3 * self.places):
            producer = Producer(place, brokers, self.network, self._random(), seen)
            producer.idempotent = self.scenery.idempotent
            self._clients.append(producer)
            self.sending.append(self.loop.start(Process(f"producer-{number}"), producer.run(number)))
        for number, place in enumerate(self.places):
            consumer = Consumer(place, brokers, self.network, self._random(), seen)
            self._clients.append(consumer)
            self.loop.start(Process(f"consumer-{number}"), consumer.run())

    def _heal(self) -> None:
        """End all faults; clients continue for a while."""
        self.row("fault", "all", "over")
        self.network.cut = set()
        self.network.slow = 0.01
        self._disk.full.clear()
        self.clocks.set_right()
        for broker in self.scenery.brokers:
            self.resume_broker(broker)
        self._start_brokers()
        self.start_engine()

        def stop() -> None:
            for client in self._clients:
                client.stopping = True

        self.loop.call_later(0.5, stop)

    def _close(self) -> None:
        for broker in self._everybody:
            for partition in broker.partitions.values():
                try:
                    partition.log.close()
                except OSError:
                    continue
        shutil.rmtree(self._directory, ignore_errors=True)

    # What faults do

    def start_broker(self, broker: int) -> None:
        """Start a broker that is not running."""
        former = self.processes.get(broker)
        if former is not None and former.alive:
            return
        process = self.processes[broker] = Process(f"broker-{broker}")
        self.checkers.restarted(broker)
        self.row("fault", process.name, "started")
        self.loop.start(process, self._live(broker, process))

    async def _live(self, broker: int, process: Process) -> None:
        link: Any = BusLink(broker, self.bus, self.network, self._random(), self.checkers.brokers)
        settings = self.scenery.broker_settings
        lives = SimulatedBroker(broker, self._directory / str(broker), settings, link, self.network)
        self.brokers[broker] = process.broker = lives
        self._everybody.append(lives)
        try:
            await lives.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if gives_up(error):
                self.row("fault", process.name, "gives up its disk, or its id")
            elif process.alive:
                self._violate("crash", f"{process.name} ended by {error!r}")
        if not process.alive:
            return  # it was killed, and only its stack is unwound
        process.broker = None
        process.alive = False
        self.row("fault", process.name, "stopped")

    def kill_broker(self, broker: int, machine: bool) -> None:
        """Kill a broker; if its ``machine`` crashes, unflushed data is lost."""
        process = self.processes[broker]
        if not process.alive:
            return
        process.alive = False
        self.row("fault", process.name, "its machine crashed" if machine else "killed")
        if machine:
            self.checkers.lost_tail(broker)
            self._disk.lose_unforced(self._directory / str(broker))

    def stop_broker(self, broker: int) -> None:
        """Ask a broker to stop cleanly."""
        process = self.processes[broker]
        if process.alive and process.broker is not None:
            self.row("fault", process.name, "asked to stop")
            process.broker.stop()

    def resume_broker(self, broker: int) -> None:
        process = self.processes[broker]
        if process.paused:
            self.row("fault", process.name, "goes on")
            self.loop.resume(process)

    def start_engine(self) -> None:
        """Start another engine; one that still runs finds itself fenced at its next commit."""
        process = self._engine = Process("engine")
        scenery = self.scenery
        engine = Engine(self.bus, self.loop, self._random(), scenery.engine_settings, scenery.shards, self._committed)
        self.row("fault", "engine", "started")
        self.loop.start(process, self._decide(engine))

    async def _decide(self, engine: Engine) -> None:
        try:
            await engine.run()
        except asyncio.CancelledError:
            raise
        except ViolatedError:
            raise
        except Exception as error:
            self._violate("crash", f"an engine ended by {error!r}")

    def kill_engine(self) -> None:
        if self._engine is not None:
            self._engine.alive = False
            self.row("fault", "engine", "killed")

    def ask(self, event: AnyEvent) -> None:
        """Publish what an admin asks for."""
        self.bus.publish([msgspec.json.encode(event)])

    def fill_disk(self, broker: int) -> None:
        self.row("fault", f"broker-{broker}", "its disk is full")
        self._disk.full.add(self._directory / str(broker))

    def free_disk(self, broker: int) -> None:
        """Make room on a broker's disk; start the broker again if the full disk ended it."""
        self._disk.full.discard(self._directory / str(broker))
        self.start_broker(broker)

    def _committed(self, batch: Batch) -> None:
        self.state = batch
        self.checkers.decided(batch)
        self.late_events.decided(batch)
