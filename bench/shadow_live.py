"""Measure how far a live shadow is behind, and what it takes at rest.

    make bench-shadow-live ARGS="[--partitions N] [--brokers N] [--seconds N]"

A stock controller has simulated brokers. ``isrflow shadow run`` observes it, and ``isrflow run`` decides on the bus of
the shadow. Single ISRs change, and a broker is lost. A lag is from the time of a batch in the controller's log until
its events are on the bus (``shadow``), or decided (``engine``).
"""

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import psutil

from bench.controllers import StockController
from bench.load import ONE_ISR_RUNS, Load, StepName, Took
from bench.machine import Meter, idle
from bench.protocol_driver import ProtocolDriver
from bench.report import Figure, measured
from brokers.launch.kafka.properties import LOOPBACK
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.thinning import NO_CHANGE
from state.event_text import decode
from state.events import Observed
from state.observed_events import BESIDE_THE_LOG
from tests.support.engine import START_TIMEOUT_S, Engine
from tests.support.waiting import wait_until

PARTITIONS, BROKERS, SECONDS = 200_000, 10, 30.0
_STEPS: tuple[StepName, ...] = ("one ISR", "lose", "return")
_POLL_S = 0.02
# In which a sign of life is looked for.
_LOOK_BACK = 100


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="shadow-live", description="Measure the lag of a live shadow.")
    parser.add_argument("--partitions", type=int, default=PARTITIONS, help=f"how many (default {PARTITIONS})")
    parser.add_argument("--brokers", type=int, default=BROKERS, help=f"how many (default {BROKERS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long to rest (default {SECONDS:g})")
    options = parser.parse_args(given)
    load = Load(partitions=options.partitions, brokers=options.brokers, idle_s=options.seconds)
    measured("shadow-live", given, lambda: list(measure(load)))


def measure(load: Load, start_engine: Callable[[Path], Engine] = Engine) -> Iterator[Figure]:
    """Yield what each step took."""

    def figure(step: str, *took: Took, driver: str = "shadow") -> Figure:
        return Figure(driver, load.partitions, step, list(took), load.brokers)

    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name, ExitStack() as ended:
        folder = Path(name)
        controller = StockController(folder, load.session_ms)
        driver = ProtocolDriver(controller, load)
        driver.start()
        ended.callback(driver.stop)
        driver.play("create")
        bus = EmbeddedBus(folder / "bus.db")
        ended.callback(bus.close)
        began_s = time.monotonic()
        shadow = _shadow(folder, controller.port)
        ended.callback(shadow.kill)
        engine = start_engine(folder)
        ended.callback(engine.kill)
        wait_until(lambda: _has_caught_up(bus), "the shadow's state", START_TIMEOUT_S)
        meter = Meter([shadow.pid], from_start=True)
        took = Took(wall_s=time.monotonic() - began_s, cpu_s=meter.spent_s(), changes=load.partitions)
        yield figure("seed, with the engine's start", took)
        watch = _Watch(bus)
        watch.start()
        ended.callback(watch.stop)
        for step in _STEPS:
            before, meter = bus.last_seq(), Meter([shadow.pid])
            changes = driver.play(step).changes
            published, decided = watch.lags_of(before, ONE_ISR_RUNS if step == "one ISR" else changes)
            cpu_s = meter.spent_s()
            yield figure(step, *(Took(wall_s=lag_s, cpu_s=cpu_s, changes=changes) for lag_s in published))
            yield figure(step, *(Took(wall_s=lag_s, cpu_s=0, changes=changes) for lag_s in decided), driver="engine")
        yield figure("idle", idle([shadow.pid], load.idle_s))
        yield figure("idle", idle([engine.process.pid], load.idle_s), driver="engine")
        print(f"  shadow: {psutil.Process(shadow.pid).memory_full_info().pss / 2**20:.0f} MiB")


def _shadow(folder: Path, port: int) -> "subprocess.Popen[bytes]":
    words = ["shadow", "run", "--bootstrap", f"{LOOPBACK}:{port}", "--bus", str(folder / "bus.db")]
    with (folder / "shadow.log").open("wb") as log:
        return subprocess.Popen([sys.executable, "-P", "-m", "cli", *words], stdout=log, stderr=log)


def _has_caught_up(bus: EmbeddedBus) -> bool:
    """Return whether it is decided that nothing more has changed."""
    decided = bus.decided_seq()
    return any(NO_CHANGE in one.raw for one in bus.recorded(max(0, decided - _LOOK_BACK), decided, _LOOK_BACK, 1 << 30))


class _Watch(threading.Thread):
    """Notes when events are on the bus, and when they are decided."""

    def __init__(self, bus: EmbeddedBus) -> None:
        super().__init__(name="watch", daemon=True)
        self._bus = bus
        self._published: list[tuple[int, int]] = []
        self._decided: list[tuple[int, int]] = []
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.wait(_POLL_S):
            for seen, seq in ((self._published, self._bus.last_seq()), (self._decided, self._bus.decided_seq())):
                if not seen or seq > seen[-1][0]:
                    seen.append((seq, now_ms()))

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def lags_of(self, after: int, changes: int) -> tuple[list[float], list[float]]:
        """Return how long after its time each event was on the bus and was decided, in seconds.

        The events are those after a seq, whose operations change so many partitions.
        """
        found: list[tuple[int, Observed]] = []

        def are_all_there() -> bool:
            seq = found[-1][0] if found else after
            news = [(entry.seq, decode(entry.raw)) for entry in self._bus.read(seq, self._bus.last_seq())]
            for seq, one in news:
                if isinstance(one, Observed) and one.cause not in BESIDE_THE_LOG:
                    found.append((seq, one))
            return sum(len(one.results.partitions) for _, one in found) >= changes

        wait_until(are_all_there, "the operations", START_TIMEOUT_S)
        last = found[-1][0] if found else after
        wait_until(lambda: self._decided[-1][0] >= last, "the decisions", START_TIMEOUT_S)
        return _lags(found, self._published), _lags(found, self._decided)


def _lags(found: Sequence[tuple[int, Observed]], seen: Sequence[tuple[int, int]]) -> list[float]:
    return [(seen[bisect_left(seen, (seq, 0))][1] - one.time_ms) / 1000 for seq, one in found] or [0.0]
