"""The engine as a separate process: started if no other engine decides, and found again by its folder."""

import contextlib
import os
import re
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from brokers.launch.service import Service
from bus.clock import now_ms
from bus.interface import Bus
from cli.cluster.bus_place import BusPlace
from conf.loader import load
from conf.place_uri import is_uri
from conf.python import PYTHON
from conf.settings import PATHS, Settings
from state.event_text import decode
from state.events import ControllerStarted

# An engine puts a tick on its bus every half second. On a busy machine a batch may take several seconds.
SILENCE_MAX_S = 8.0
# The longest silence of an engine between its claim and its first batch.
COLD_START_MAX_MS = 60_000
_EPOCH, _DECIDED = "claimed_epoch", "decided_seq"
_POLL_S = 0.1
# The other address in the line ends in /metrics.
_PAGE = re.compile(rb"https?://[^\s\"/]+/(?=[\"\s])")
# More events than brokers and gateways publish while an engine starts.
_EVENTS_READ_MAX = 20_000


class EngineProcess(Service):
    """The process of ``isrflow run`` on a bus, named by path or URL. Its files are under ``folder``.

    ``settings`` are ``key=value`` texts that override the file ``conf``, in which relative paths count from
    ``directory``. Metrics use any free port if theirs is taken.
    """

    awaited = "its claim and its first decided event"

    def __init__(
        self,
        folder: Path,
        bus: Path | str,
        settings: Sequence[str] = (),
        conf: Path | None = None,
        directory: str | None = None,
    ) -> None:
        super().__init__("engine", folder, "engine.log")
        self._bus = BusPlace.of(bus)
        self._settings = settings
        self._conf = conf
        self._directory = directory

    def figures(self) -> dict[str, int]:
        with contextlib.closing(self._bus.open()) as bus:
            return {_EPOCH: bus.claimed_epoch(), _DECIDED: bus.decided_seq()}

    def settings(self) -> Settings:
        """Load the engine's settings. Raises ``SettingsError``."""
        return load(self._conf, self._settings, environment=os.environ, directory=self._directory)

    def command(self) -> list[str]:
        settings = self.settings()
        metrics = free_metrics_port(settings.metrics_host, settings.metrics_port)
        # A checkpoint that the settings name comes after this one.
        ours = (f"bus={self._bus.url}", f"checkpoint.dir={self.folder / 'checkpoint'}")
        sets = (*ours, *self._settings, f"metrics.port={metrics}", *_absolute(settings))
        conf = ("--conf", str(self._conf)) if self._conf else ()
        program = "from cli import main; main()"
        return [*PYTHON, "-c", program, "run", *conf, *(part for text in sets for part in ("--set", text))]

    def page(self) -> str | None:
        """Return the address of the live page, as the running engine logged it. None if it serves none."""
        if self.state != "running" or not self.log_file.exists():
            return None
        with self.log_file.open("rb") as log:
            found = [_PAGE.search(line) for line in log if b"serving metrics" in line]
        return found[-1][0].decode() if found and found[-1] else None

    def is_ready(self) -> bool:
        """Check whether the engine decides."""
        now = self.figures()
        return all(figure > self.before.get(name, 0) for name, figure in now.items())


def _absolute(settings: Settings) -> list[str]:
    """Return the settings that name files, with absolute paths, because the engine runs in a folder of its own."""
    named = {name: getattr(settings, name.replace(".", "_")) for name in PATHS}
    return [f"{name}={place if is_uri(place) else Path(place).absolute()}" for name, place in named.items() if place]


def decides(bus: Bus, timeout_s: float = SILENCE_MAX_S) -> bool:
    """Check whether any engine decides on a bus: its decided seq rises within the time-out.

    If an engine has only just claimed the bus, wait until it decides or should have decided.
    """
    if bus.claimed_epoch() == 0:
        return False
    before = bus.decided_seq()
    end = time.monotonic() + max(timeout_s, start_remaining_ms(bus) / 1000)
    while bus.decided_seq() <= before:
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


def start_remaining_ms(bus: Bus) -> int:
    """Return how much longer an engine that claimed the bus and has not decided yet may take to start.

    That is ``COLD_START_MAX_MS`` at most, even if the clock has been set back since the claim.
    """
    decided, last = bus.decided_seq(), bus.last_seq()
    newest = bus.read(max(decided, last - _EVENTS_READ_MAX), last) if last > decided else []
    events = [decode(entry.raw) for entry in newest if b"controller_started" in entry.raw]
    claimed_ms = [event.time_ms for event in events if isinstance(event, ControllerStarted)]
    return max(0, COLD_START_MAX_MS - max(0, now_ms() - claimed_ms[-1])) if claimed_ms else 0


def free_metrics_port(host: str, port: int) -> int:
    """Return ``port`` if nothing listens there, otherwise 0, which means any free port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, max(port, 0), type=socket.SOCK_STREAM)[0]
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError:
        return 0
    return port
