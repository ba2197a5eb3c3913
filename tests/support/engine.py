"""Start the engine as users do, and wait on its bus until events are decided."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from bus.clock import now_ms
from bus.interface import Bus
from bus.open_bus import open_bus
from controller_logic.replay import DecidedLog, decide
from state.policy import Policy
from tests.support.freezing import freeze, stand_still
from tests.support.waiting import wait_until

ISRFLOW = Path(sys.executable).with_name("isrflow")
RUN = (str(ISRFLOW), "run")
STANDBY = (*RUN, "--standby")
START_TIMEOUT_S = 240.0
DECIDE_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 180.0


# The rules refuse this event and change nothing; its answer shows that the engine decides.
AWAITED = b'{"kind":"delete_topic","time_ms":0,"topic":"awaited"}'


class Engine:
    """An engine process on the bus in a directory; its output goes to ``engine.log`` there, or to ``log``."""

    def __init__(
        self,
        directory: Path,
        *settings: str,
        command: tuple[str, ...] = RUN,
        log: Path | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.directory = directory
        self.log = log or directory / "engine.log"
        sets = [f"bus=sqlite:{directory / 'bus.db'}", f"checkpoint.dir={directory / 'checkpoint'}", *settings]
        if not any(text.startswith("metrics.port") for text in sets):
            sets.append("metrics.port=-1")
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [*command, *(part for text in sets for part in ("--set", text))],
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd=cwd,
            )

    def wait_ready(self, bus: Bus) -> None:
        """Publish an event, and wait until it is decided."""
        decided(bus, bus.publish([AWAITED]), START_TIMEOUT_S, self)

    def wait(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        """Wait for the process to end, and return its exit code."""
        return self.process.wait(timeout_s)

    def stop(self) -> int:
        """Ask the engine to stop, as an operator does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.wait()
        finally:
            self.kill()

    def signal_all(self, number: int) -> None:
        """Signal the process, its JVM, and its workers, each of which is in its own process group."""
        for one in self._all():
            # Spark ends idle workers at any time.
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(number)

    def freeze(self, bus_path: Path) -> None:
        """Stop the processes that ``signal_all`` signals while none of them writes to the bus at ``bus_path``."""
        freeze(bus_path, self._all)

    def stand_still(self) -> None:
        """Stop the processes that ``signal_all`` signals. Use ``freeze`` if the bus is a file."""
        stand_still(self._all)

    def _all(self) -> list[psutil.Process]:
        process = psutil.Process(self.process.pid)
        return [process, *process.children(recursive=True)]

    def kill(self) -> None:
        """End the process and its JVM at once."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(STOP_TIMEOUT_S)


@contextlib.contextmanager
def running_engine(directory: Path, *settings: str) -> Iterator[Bus]:
    """Run ``isrflow run`` until the block ends; yield its bus once it decides.

    The bus is a file in ``directory`` unless the settings name another.
    """
    named = [text.removeprefix("bus=") for text in settings if text.startswith("bus=")]
    bus = open_bus(named[-1] if named else str(directory / "bus.db"))
    engine = Engine(directory, *settings)
    try:
        engine.wait_ready(bus)
        yield bus
        engine.stop()
    finally:
        engine.kill()
        bus.close()


def encoded(kind: str, **fields: object) -> bytes:
    """Encode an event with the present time."""
    return msgspec.json.encode({"kind": kind, "time_ms": now_ms(), **fields})


def decided(bus: Bus, seq: int, timeout_s: float = DECIDE_TIMEOUT_S, engine: Engine | None = None) -> None:
    """Wait until event ``seq`` is decided; raise ``RuntimeError`` if the engine ends before that."""

    def done() -> bool:
        if engine and engine.process.poll() is not None:
            raise RuntimeError(f"the engine ended: {engine.log.read_text()[-2000:]}")
        return bus.decided_seq() >= seq

    wait_until(done, f"event {seq} to be decided", timeout_s)


def decisions_of(bus: Bus) -> list[tuple[int, int, bytes]]:
    """Read the whole decision log."""
    found: list[tuple[int, int, bytes]] = []
    while some := bus.decisions(found[-1][:2] if found else (0, -1), 50_000):
        found += [tuple(entry) for entry in some]
    return found


def by_rules(bus: Bus) -> DecidedLog:
    """Decide the events of a bus by the rules alone; the engine must have decided the same."""
    return decide(bus.read(0, bus.decided_seq()), Policy())
