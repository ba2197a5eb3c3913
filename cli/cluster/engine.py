"""The engine as a process of its own: started where none decides, and found again by its folder."""

import socket
import time
from collections.abc import Sequence
from pathlib import Path

from brokers.launch.service import Service
from bus.clock import now_ms
from bus.interface import Bus
from cli.cluster.bus_place import BusPlace
from conf.loader import load
from conf.python import PYTHON
from state.event_text import decode
from state.events import ControllerStarted

# An engine puts a tick on its bus every half a second; on a busy machine a batch may take some.
SILENCE_MAX_S = 8.0
# From its claim to its first batch an engine is silent for this long at most.
COLD_START_MAX_MS = 60_000
_POLL_S = 0.1
# More than brokers and gateways say while an engine starts.
_EVENTS_READ_MAX = 20_000


class EngineProcess(Service):
    """Start and stop ``isrflow run`` on a bus, named by path or URL; its files are under ``folder``.

    ``settings`` are ``key=value`` texts that are laid over those of the file ``conf``. Metrics go to any free port
    when theirs is taken.
    """

    def __init__(self, folder: Path, bus: Path | str, settings: Sequence[str] = (), conf: Path | None = None) -> None:
        super().__init__("engine", folder, "engine.log")
        self._bus = BusPlace.of(bus)
        self._settings = settings
        self._conf = conf
        self._epoch_before = 0
        self._decided_before = 0

    def command(self) -> list[str]:
        with_bus = self._bus.open()
        self._epoch_before, self._decided_before = with_bus.claimed_epoch(), with_bus.decided_seq()
        with_bus.close()
        settings = load(self._conf, self._settings)
        metrics = free_metrics_port(settings.metrics_host, settings.metrics_port)
        ours = (f"bus={self._bus.url}", f"checkpoint.dir={self.folder / 'checkpoint'}")
        sets = (*ours, *self._settings, f"metrics.port={metrics}")
        conf = ("--conf", str(self._conf)) if self._conf else ()
        program = "from cli import main; main()"
        return [*PYTHON, "-c", program, "run", *conf, *(part for text in sets for part in ("--set", text))]

    def is_ready(self) -> bool:
        """Say whether the engine decides."""
        bus = self._bus.open()
        try:
            return bus.claimed_epoch() > self._epoch_before and bus.decided_seq() > self._decided_before
        finally:
            bus.close()


def decides(bus: Bus, timeout_s: float = SILENCE_MAX_S) -> bool:
    """Say whether any engine decides on a bus: it moves within the time-out.

    One that has only just claimed the bus is waited for, until it decides or should have.
    """
    if bus.claimed_epoch() == 0:
        return False
    before = bus.decided_seq()
    end = time.monotonic() + max(timeout_s, starting_for_ms(bus) / 1000)
    while bus.decided_seq() <= before:
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def starting_for_ms(bus: Bus) -> int:
    """Say for how long an engine may yet be starting that claimed the bus and has not decided since."""
    decided, last = bus.decided_seq(), bus.last_seq()
    newest = bus.read(max(decided, last - _EVENTS_READ_MAX * bus.seq_step), last) if last > decided else []
    events = [decode(entry.raw) for entry in newest if b"controller_started" in entry.raw]
    claimed_ms = [event.time_ms for event in events if isinstance(event, ControllerStarted)]
    return max(0, claimed_ms[-1] + COLD_START_MAX_MS - now_ms()) if claimed_ms else 0


def free_metrics_port(host: str, port: int) -> int:
    """Return ``port`` when nobody listens there, else 0: any free one."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, max(port, 0)))
        except OSError:
            return 0
    return port
