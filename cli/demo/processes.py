"""The demo's processes: each in a group of its own, with a log, and ended by its id."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

KILL_TIMEOUT_S = 10.0
LOG_LINES_SHOWN = 5


class DemoError(Exception):
    """The demo cannot go on; the message says what happened, and where to look."""


class Process:
    """Run one command with its output in a file."""

    def __init__(self, name: str, command: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            # A session of its own: Ctrl-C reaches the demo alone, which stops the others in order.
            self._popen = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._ended_by_us = False

    @property
    def pid(self) -> int:
        return self._popen.pid

    def check(self) -> None:
        """Raise ``DemoError`` when the process ended and nobody asked it to."""
        code = self._popen.poll()
        if code is None or self._ended_by_us:
            return
        last = self.log.read_text(errors="replace").splitlines()[-LOG_LINES_SHOWN:]
        raise DemoError("\n".join([f"{self.name} ended by itself with {code}; its log {self.log} ends with:", *last]))

    def kill(self) -> None:
        """End the process, and what it has started, at once."""
        self._ended_by_us = True
        # The group outlives its first process: Spark's JVM and workers are in it too.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait(KILL_TIMEOUT_S)
