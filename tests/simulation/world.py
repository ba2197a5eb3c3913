"""One history: a cluster on a clock and network of its own, its faults and clients, all drawn from one seed.

Nothing else decides what happens: neither the wall clock, nor the addresses of objects, nor the order
of a set of strings. So a seed names a history for good, as long as the code stays what it is.
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

from isrflow.brokers.mock.settings import Settings
from isrflow.bus.embedded import now_ms
from isrflow.state.cluster import Outcome, State
from isrflow.state.events import AnyEvent, CreateTopic, Logged, TopicPartition
from tests.simulation.broker import SimulatedBroker
from tests.simulation.bus import BusLink, SimulatedBus
from tests.simulation.checkers import Checkers
from tests.simulation.client import Client, Consumer, Producer
from tests.simulation.disk import Disk
from tests.simulation.engine import Engine
from tests.simulation.faults import Faults
from tests.simulation.network import Network
from tests.simulation.patches import in_place_of_the_machine
from tests.simulation.quiescence import unsettled
from tests.simulation.virtual_loop import Process, StuckError, VirtualLoop

TOPIC = "t"
SETTLE_S = 2.0
SETTLES_MAX = 20
ROWS_KEPT = 60
SHARED_MEMORY = Path("/dev/shm")


class Row(NamedTuple):
    """Hold one event of a history."""

    time_s: float
    who: str
    what: str
    more: str

    def __str__(self) -> str:
        return f"{self.time_s:9.4f}  {self.who:<10} {self.what:<22} {self.more}"


class Violated(NamedTuple):
    """Say which invariant does not hold, and how that shows."""

    invariant: str
    what: str


class ViolatedError(Exception):
    """End a history: what comes after a violation says nothing."""


class World:
    """Hold the parts of one history, and run it."""

    def __init__(self, seed: int, machine_crashes: bool = False, tell: Callable[[Row], None] | None = None) -> None:
        self.rng = random.Random(seed)
        self.machine_crashes = machine_crashes
        self.rows: deque[Row] = deque(maxlen=ROWS_KEPT)
        self.violated: Violated | None = None
        self.loop = VirtualLoop(self._ran)
        self.network = Network(self.loop, self._random(), 0.1, lambda what: self._violate("crash", what))
        self.bus = SimulatedBus()
        self.checkers = Checkers(self._violate, self.row)
        self.processes: dict[int, Process] = {}
        self.brokers: dict[int, SimulatedBroker] = {}
        self.state: State | None = None
        self._tell = tell
        self._disk = Disk(self._random())
        self._engine: Process | None = None
        self._clients: list[Client] = []
        self._everybody: list[Any] = []
        self._directory = Path()
        # What differs from history to history.
        self.broker_count = self.rng.choice((3, 3, 4, 5))
        self.places = [TopicPartition(TOPIC, partition) for partition in range(self.rng.choice((1, 1, 2)))]
        self.min_insync = self.rng.choice((1, 2, 2))
        self.lasts_s = self.rng.uniform(3.0, 9.0)

    def _random(self) -> random.Random:
        return random.Random(self.rng.getrandbits(64))

    def row(self, who: str, what: str, more: str) -> None:
        """Note an event for whoever reads the history."""
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
        gc.disable()  # when garbage goes must not matter, nor take time
        try:
            with in_place_of_the_machine(self.loop, self.network, self._disk):
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
        self.loop.run_until(1.0)
        self._create_topic()
        self.loop.run_until(2.0)
        self._start_clients()
        faults = Faults(self, self._random())
        self.loop.start(Process("faults"), faults.run(2.0 + self.lasts_s))
        self.loop.run_until(2.0 + self.lasts_s)
        self._heal()
        for _ in range(SETTLES_MAX):
            self.loop.run_until(self.loop.now + SETTLE_S)
            found = unsettled(self)
            if found is None:
                return
            self._start_brokers()  # one may have been on its way out when the faults were over
        self._violate(*found)

    def _start_brokers(self) -> None:
        for broker in range(1, self.broker_count + 1):
            self.start_broker(broker)

    def _create_topic(self) -> None:
        ids = list(range(1, self.broker_count + 1))
        assignment = {str(p): tuple(self.rng.sample(ids, 3)) for p in range(len(self.places))}
        config: dict[str, Any] = {"min.insync.replicas": str(self.min_insync)}
        created = CreateTopic(time_ms=now_ms(), topic=TOPIC, assignment=assignment, config=config)
        self.ask(created)

    def _start_clients(self) -> None:
        brokers = list(range(1, self.broker_count + 1))
        for number, place in enumerate(3 * self.places):
            producer = Producer(place, brokers, self.network, self._random(), self.checkers)
            consumer = Consumer(place, brokers, self.network, self._random(), self.checkers)
            self._clients += [producer, consumer]
            self.loop.start(Process(f"producer-{number}"), producer.run(number))
            self.loop.start(Process(f"consumer-{number}"), consumer.run())

    def _heal(self) -> None:
        """End all faults; clients send a little longer."""
        self.row("fault", "all", "over")
        self.network.cut = set()
        self.network.slow = 0.01
        for broker in range(1, self.broker_count + 1):
            self.resume_broker(broker)
        self._start_brokers()
        self.start_engine()

        def stop() -> None:
            for client in self._clients:
                client.stopping = True

        self.loop.call_later(1.0, stop)

    def _close(self) -> None:
        for broker in self._everybody:
            for partition in broker.partitions:
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
        link: Any = BusLink(self.bus, self.network, self._random())
        settings = _broker_settings(self.min_insync)
        lives = SimulatedBroker(broker, self._directory / str(broker), settings, link, self.network)
        self.brokers[broker] = process.broker = lives
        self._everybody.append(lives)
        try:
            await lives.run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if process.alive:
                self._violate("crash", f"{process.name} ended by {error!r}")
        if not process.alive:
            return  # killed: this is only its stack going away
        process.broker = None
        process.alive = False
        self.row("fault", process.name, "stopped")

    def kill_broker(self, broker: int, machine: bool) -> None:
        """Kill a broker; with its ``machine`` goes what was not forced to disk."""
        process = self.processes[broker]
        if not process.alive:
            return
        process.alive = False
        self.row("fault", process.name, "its machine crashed" if machine else "killed")
        if machine:
            self.checkers.robbed_of_its_tail(broker)
            self._disk.lose_unforced(self._directory / str(broker))

    def stop_broker(self, broker: int) -> None:
        """Ask a broker to stop in an orderly way."""
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
        self._engine = Process("engine")
        engine = Engine(self.bus, self.loop, self._random(), _engine_settings(), self._committed)
        self.row("fault", "engine", "started")
        self.loop.start(self._engine, engine.run())

    def kill_engine(self) -> None:
        if self._engine is not None:
            self._engine.alive = False
            self.row("fault", "engine", "killed")

    def ask(self, event: AnyEvent) -> None:
        """Publish what an admin asks for."""
        self.bus.publish([msgspec.json.encode(event)])

    def _committed(self, batch: list[Logged], before: State, outcome: Outcome) -> None:
        self.state = outcome.state
        self.checkers.decided(batch, before, outcome)


def _engine_settings() -> dict[str, str]:
    return {"broker.session.timeout.ms": "1000", "auto.leader.rebalance.enable": "false"}


def _broker_settings(min_insync: int) -> Settings:
    return Settings(
        broker_heartbeat_interval_ms=250,
        controlled_shutdown_timeout_ms=1_500,
        watermark_interval_ms=50,
        decisions_poll_interval_ms=20,
        replica_lag_time_max_ms=600,
        replica_fetch_wait_max_ms=200,
        replica_fetch_max_bytes=300,
        replica_fetch_backoff_ms=50,
        replica_socket_timeout_ms=800,
        replica_high_watermark_checkpoint_interval_ms=2_000,
        alter_isr_timeout_ms=800,
        alter_isr_backoff_ms=100,
        log_segment_bytes=600,
        min_insync_replicas=min_insync,
    )
