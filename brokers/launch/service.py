"""One process of a cluster on this machine: start it, wait until it is ready, watch it, stop it, find it again."""

import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from brokers.launch.patience import Patience
from brokers.launch.process import DetachedProcess, State
from conf.private_dir import private_dir

START_TIMEOUT_S = 180.0
STOP_TIMEOUT_S = 60.0
LOG_LINES_SHOWN = 8
# The file that remembers a service's process, in its folder.
PROCESS_FILE = "process.json"
_POLL_S = 0.05
_TAIL_BYTES = 1 << 16
_OF_STACK_TRACE = "\tat "


class ServiceError(Exception):
    """A process does not do what it should; the message has the end of its log."""


class Service:
    """One process with its files in ``folder``, which need not exist yet.

    A subclass defines what to run (``command``) and when it is ready (``is_ready``). ``console`` is the file for the
    process's output, if that is not its log.
    """

    # What makes it ready, for messages.
    awaited = "it to be ready"

    def __init__(self, name: str, folder: Path, log: str, console: str | None = None) -> None:
        self.name = name
        self.folder = folder.resolve()
        self.log_file = self.folder / log
        self.console = self.folder / (console or log)
        self._process = DetachedProcess(self.folder / PROCESS_FILE)
        self._ended_by_us = False

    def command(self) -> Sequence[str]:
        """Return the command line, after writing the files that it needs."""
        raise NotImplementedError

    def figures(self) -> dict[str, int]:
        """Return figures from before a start, with which ``is_ready`` compares later ones."""
        return {}

    def is_ready(self) -> bool:
        """Return whether the running process does its work yet."""
        raise NotImplementedError

    @property
    def before(self) -> Mapping[str, int]:
        """What ``figures`` returned before the start, which another command may have made."""
        return self._process.before

    @property
    def state(self) -> State:
        return self._process.state

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def start(self) -> None:
        """Start the process, without a wait. Raises ``ServiceError``, ``JarsError`` or ``JavaError``."""
        if self.state != "stopped":
            raise ServiceError(f"{self.name} already runs as process {self.pid}")
        private_dir(self.folder)
        self._ended_by_us = False
        figures = self.figures()
        self._process.start(self.command(), self.folder, self.console, figures)

    def wait_until_started(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the process is ready, or was before. Raises ``ServiceError`` if it ends or the time-out passes."""
        self.wait_until(lambda: self._process.was_ready or self.is_ready(), timeout_s, "did not start")
        self._process.note_ready()

    def wait_until(self, condition: Callable[[], bool], timeout_s: float, complaint: str) -> None:
        """Wait for a condition. Raises ``ServiceError`` if the process ends or the time-out passes.

        The wait is longer while the process moves on. ``complaint`` is what it did not do.
        """
        patience = Patience(timeout_s, self.moved)
        while True:
            # First, because another process may listen on the port of a gateway that ended.
            self.check()
            if condition():
                return
            if patience.is_over():
                waited = f"{self.name} {complaint} in {patience.waited_s:.0f} s"
                raise ServiceError(f"{waited}: waited for {self.awaited}; {self.seen()}; {self._log_end()}")
            time.sleep(_POLL_S)

    def moved(self) -> tuple[int, ...]:
        """Return figures that change while the process moves on: its seconds of CPU, and the lengths of its logs."""
        logs = dict.fromkeys((self.log_file, self.console))
        return int(self._process.cpu_s()), *(path.stat().st_size for path in logs if path.exists())

    def seen(self) -> str:
        """Describe the running process, for a message."""
        return f"process {self.pid} is {self.state} and has used {self._process.cpu_s():.1f} s of CPU"

    def check(self) -> None:
        """Raise ``ServiceError`` if the process ended by itself."""
        if self.state == "stopped" and not self._ended_by_us:
            raise ServiceError(f"{self.name} ended by itself; {self._log_end()}")

    def _log_end(self) -> str:
        return f"its log {self.log_file} ends with:\n{self.last_lines()}"

    def last_lines(self) -> str:
        """Return the end of the process's output, for a message, without Java's stack traces."""
        lines: list[str] = []
        for path in dict.fromkeys((self.log_file, self.console)):
            if path.exists():
                with path.open("rb") as file:
                    file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
                    read = file.read().decode(errors="replace").splitlines()
                lines += [line for line in read if not line.startswith(_OF_STACK_TRACE)][-LOG_LINES_SHOWN:]
        return "\n".join(lines)

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Stop the process cleanly. If the time-out passes first, kill it and return False."""
        self.resume()
        self.terminate()
        if self._process.wait(timeout_s):
            return True
        self.kill()
        return False

    def terminate(self) -> None:
        """Ask the process to stop, without a wait."""
        self._ended_by_us = True
        self._process.signal(signal.SIGTERM)

    def kill(self) -> None:
        """End the process at once, as a crash would."""
        self._ended_by_us = True
        self._process.kill()

    def pause(self) -> None:
        """Freeze the process: its connections stay open, and it answers on none."""
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen process continue."""
        self._process.signal(signal.SIGCONT)


def kill_all(services: Iterable[Service]) -> None:
    """Kill all services. Raises the first ``TimeoutError``, once all were tried."""
    stuck: list[TimeoutError] = []
    for service in services:
        try:
            service.kill()
        except TimeoutError as error:
            stuck.append(error)
    if stuck:
        raise stuck[0]
