"""A process that outlives whoever started it, and is found again by its id and the moment it started."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
import psutil

START_TIME_SLACK_S = 1.0
KILL_TIMEOUT_S = 10.0

State = Literal["running", "paused", "stopped"]


class _Identity(msgspec.Struct, frozen=True):
    pid: int
    started_s: float


class DetachedProcess:
    """Start, watch and end one process whose identity is kept in a file.

    An id alone is not enough: after the process ended the system gives it to another one, which is then
    left alone, because it started at another moment.
    """

    def __init__(self, identity: Path) -> None:
        self._identity = identity
        self._started: subprocess.Popen[bytes] | None = None

    def start(self, command: Sequence[str], folder: Path, output: Path) -> int:
        """Start ``command`` in ``folder``, in a session of its own, and return its id. Raises OSError."""
        with output.open("ab") as sink:
            self._started = subprocess.Popen(
                command, cwd=folder, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True
            )
        pid = self._started.pid
        aside = self._identity.with_suffix(".new")
        aside.write_bytes(msgspec.json.encode(_Identity(pid, psutil.Process(pid).create_time())))
        os.replace(aside, self._identity)
        return pid

    def _found(self) -> psutil.Process | None:
        if self._started is not None:
            self._started.poll()  # a child that ended stays in the process table until its parent looks
        try:
            known = msgspec.json.decode(self._identity.read_bytes(), type=_Identity)
            found = psutil.Process(known.pid)
            same = abs(found.create_time() - known.started_s) < START_TIME_SLACK_S
            return found if same and found.status() != psutil.STATUS_ZOMBIE else None
        except (FileNotFoundError, msgspec.MsgspecError, psutil.NoSuchProcess):
            return None

    @property
    def pid(self) -> int | None:
        """Return the process's id while it lives."""
        found = self._found()
        return None if found is None else found.pid

    @property
    def state(self) -> State:
        found = self._found()
        if found is None:
            return "stopped"
        with contextlib.suppress(psutil.NoSuchProcess):
            return "paused" if found.status() == psutil.STATUS_STOPPED else "running"
        return "stopped"

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False when the process is not there."""
        found = self._found()
        if found is None:
            return False
        try:
            found.send_signal(number)
        except psutil.NoSuchProcess:
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """Wait for the process's end; False when it is still there after the time-out."""
        found = self._found()
        if found is None:
            return True
        try:
            found.wait(timeout_s)
        except psutil.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """End the process and all that it started, paused or not, and wait until they are gone.

        Raises ``TimeoutError``.
        """
        found = self._found()
        if found is None:
            return
        family = [found]
        with contextlib.suppress(psutil.NoSuchProcess):
            family += found.children(recursive=True)
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        _, alive = psutil.wait_procs(family, KILL_TIMEOUT_S)
        if alive:
            pids = ", ".join(str(one.pid) for one in alive)
            raise TimeoutError(f"still there {KILL_TIMEOUT_S:.0f} s after SIGKILL: process {pids}")
