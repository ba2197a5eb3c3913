"""The faults of a history, drawn from its seed. They come now and then, and last for a while.

Admin requests come between the faults (``requests``).
"""

import asyncio
import random
from typing import Protocol

from tests.simulation.bus import SimulatedBus
from tests.simulation.network import BUS, Network
from tests.simulation.requests import RequestedCluster, Requests
from tests.simulation.virtual_loop import START_MS, Process
from tests.simulation.wall_clocks import Setting, WallClocks

REST_S = (0.03, 0.7)
LASTS_S = (0.1, 2.0)
HOUR_MS = 3_600_000
# The reading of a clock that counts microseconds instead of milliseconds.
MICROSECONDS_MS = 1_700_000_000_000_000


class Cluster(RequestedCluster, Protocol):
    """A cluster as faults see it."""

    network: Network
    clocks: WallClocks
    bus: SimulatedBus
    processes: dict[int, Process]
    machine_crashes: bool

    def start_broker(self, broker: int) -> None: ...

    def kill_broker(self, broker: int, machine: bool) -> None: ...

    def stop_broker(self, broker: int) -> None: ...

    def resume_broker(self, broker: int) -> None: ...

    def start_engine(self) -> None: ...

    def kill_engine(self) -> None: ...

    def fill_disk(self, broker: int) -> None: ...

    def free_disk(self, broker: int) -> None: ...


class Faults:
    """The source of faults. They begin one by one, and a lasting fault overlaps with the next."""

    def __init__(self, cluster: Cluster, rng: random.Random) -> None:
        self._cluster = cluster
        self._rng = rng
        self._requests = Requests(cluster, rng)

    async def run(self, until_s: float) -> None:
        """Cause faults until ``until_s``; the simulation heals what is broken by then."""
        loop = asyncio.get_running_loop()
        kinds = [self._kill, self._kill, self._stop, self._pause, self._cut, self._cut, self._cut_from_bus]
        kinds += [self._slow, self._engine, *self._requests.kinds]
        if self._cluster.scenery.disks_fail:
            kinds += [self._fill_disk, self._lose_log_dir]
        if self._cluster.scenery.duplicates:
            kinds.append(self._duplicate)
        if self._cluster.scenery.clocks_lie:
            kinds += [self._set_clock, self._set_clock, self._forge]
        while loop.time() + (rest_s := self._rng.uniform(*REST_S)) < until_s:
            await asyncio.sleep(rest_s)
            self._rng.choice(kinds)()

    def _later(self, what: object, *args: object) -> None:
        lasts = self._rng.uniform(*LASTS_S)
        asyncio.get_running_loop().call_later(lasts, what, *args)  # type: ignore[arg-type]

    def _broker(self) -> int:
        return self._rng.choice(sorted(self._cluster.processes))

    def _kill(self) -> None:
        broker = self._broker()
        self._cluster.kill_broker(broker, machine=self._cluster.machine_crashes and self._rng.random() < 0.6)
        self._later(self._cluster.start_broker, broker)

    def _stop(self) -> None:
        broker = self._broker()
        self._cluster.stop_broker(broker)
        self._later(self._cluster.start_broker, broker)

    def _pause(self) -> None:
        broker = self._broker()
        process = self._cluster.processes[broker]
        process.paused = True
        self._cluster.row("fault", process.name, "paused")
        self._later(self._cluster.resume_broker, broker)

    def _cut(self) -> None:
        one, other = self._rng.sample(sorted(self._cluster.processes), 2)
        self._cut_link(f"broker-{one}", f"broker-{other}")

    def _cut_from_bus(self) -> None:
        self._cut_link(f"broker-{self._broker()}", BUS)

    def _cut_link(self, one: str, other: str) -> None:
        links = {(one, other)} if other != BUS and self._rng.random() < 0.4 else {(one, other), (other, one)}
        self._cluster.network.cut |= links
        self._cluster.row("fault", f"{one} to {other}", f"cut, {len(links)} way")
        self._later(self._cluster.network.cut.difference_update, links)

    def _slow(self) -> None:
        network = self._cluster.network
        network.slow = self._rng.choice((0.0, 0.05, 0.3))
        self._cluster.row("fault", "network", f"{network.slow:.0%} take a detour")

    def _engine(self) -> None:
        if self._rng.random() < 0.6:
            self._cluster.kill_engine()
            self._later(self._cluster.start_engine)
        else:
            self._cluster.start_engine()  # the running engine does not know yet

    def _fill_disk(self) -> None:
        broker = self._broker()
        self._cluster.fill_disk(broker)
        self._later(self._cluster.free_disk, broker)

    def _duplicate(self) -> None:
        """Register another process under a broker's id and end it, so that the broker stops and starts again."""
        broker = self._broker()
        self._requests.register_another(broker)
        self._later(self._cluster.start_broker, broker)

    def _lose_log_dir(self) -> None:
        """Make a broker report its log directory as lost, and stop; its logs come back with it."""
        broker = self._broker()
        self._requests.report_offline(broker)
        self._cluster.kill_broker(broker, machine=False)
        self._later(self._cluster.start_broker, broker)

    def _set_clock(self) -> None:
        """Set the clock of a host or of the bus; it also drifts until it is set right again."""
        hosts = [*sorted(process.name for process in self._cluster.processes.values()), "engine", BUS]
        host = self._rng.choice(hosts)
        ahead_ms = self._rng.choice((10_000, HOUR_MS, -HOUR_MS, -60_000, MICROSECONDS_MS if host != BUS else 0))
        self._cluster.row("fault", host, f"its clock is {ahead_ms} ms ahead")
        self._cluster.clocks.set(host, Setting(ahead_ms, self._rng.choice((0.0, 0.2, -0.2))))
        self._later(self._cluster.clocks.set, host, Setting())

    def _forge(self) -> None:
        """Publish forged events of the engine."""
        who = self._rng.choice(("", ',"controller_epoch":2147483647'))
        forged = self._rng.choice(
            (
                '"kind":"controller_started","controller_id":"forged","controller_epoch":2147483647',
                f'"kind":"tick"{who}',
                f'"kind":"sessions_extended","by_ms":5000{who}',
            )
        )
        time_ms = self._rng.choice((0, START_MS + HOUR_MS, MICROSECONDS_MS))
        self._cluster.row("fault", "somebody", f"forges {forged}")
        self._cluster.bus.publish([f'{{"time_ms":{time_ms},{forged}}}'.encode()])
