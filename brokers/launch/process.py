"""A process that outlives its starter. It is found again by its id and the time at which it started."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Literal

import msgspec
import psutil

from conf.environment import CONF_VARIABLE
from conf.whole_file import replace

KILL_TIMEOUT_S = 10.0
_POLL_S = 0.02
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START_TICKS_FIELD = 19  # of those in /proc/PID/stat that come after the program's name

State = Literal["running", "paused", "stopped"]


class _Identity(msgspec.Struct, frozen=True):
    pid: int
    started: str
    # Figures from before the start, to compare with later ones.
    before: dict[str, int] = {}
    # Whether the process has been seen to do its work.
    was_ready: bool = False


# Made at import, because several threads may use it at once (see ``brokers/wire/layout.py``).
_identity = msgspec.json.Decoder(_Identity)


def start_of(process: psutil.Process) -> str:
    """Return when a process started, as a text that never changes. Raises ``psutil.NoSuchProcess``.

    The time of day would change: Linux counts ticks since the boot, and setting the clock shifts the time of the boot.
    """
    if not _BOOT_ID.exists():
        return f"{process.create_time():.2f}"
    try:
        _, _, after_name = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")
    except (FileNotFoundError, ProcessLookupError) as error:
        raise psutil.NoSuchProcess(process.pid) from error
    return f"{_BOOT_ID.read_text().strip()}/{after_name.split()[_START_TICKS_FIELD]}"


def _is_gone(process: psutil.Process) -> bool:
    """Return whether a process has ended. A zombie has ended once its last thread has.

    A killed process with a thread that waits for the disk is a zombie too, and still has its ports, locks and files.
    """
    try:
        if not process.is_running():
            return True
        return bool(process.status() == psutil.STATUS_ZOMBIE and process.num_threads() <= 1)
    except psutil.NoSuchProcess:
        return True


def _becomes(condition: Callable[[], bool], timeout_s: float) -> bool:
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(_POLL_S)
    return True


class DetachedProcess:
    """One process, whose identity is kept in a file, with the progress of its start.

    The id alone is not enough, because the system may give it to another process later. That process has started at
    another time, so it is left alone.
    """

    def __init__(self, identity: Path) -> None:
        self._identity = identity
        self._started: subprocess.Popen[bytes] | None = None

    def start(
        self, command: Sequence[str], folder: Path, output: Path, before: Mapping[str, int] = MappingProxyType({})
    ) -> int:
        """Start ``command`` in ``folder``, in a session of its own, and return its id. Raises ``OSError``.

        ``before`` is kept for callers that wait until the process is ready, in this or a later command of the user.
        The process does not inherit the settings file that the environment names for commands that a user types.
        """
        environment = {key: value for key, value in os.environ.items() if key != CONF_VARIABLE}
        with output.open("ab") as sink:
            self._started = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        try:
            pid = self._started.pid
            self._remember(_Identity(pid, start_of(psutil.Process(pid)), dict(before)))
        except BaseException:
            # No later call could find the process.
            self._started.kill()
            self._started.wait()
            raise
        return self._started.pid

    def _remember(self, identity: _Identity) -> None:
        replace(self._identity, msgspec.json.encode(identity))

    def _known(self) -> _Identity | None:
        try:
            return _identity.decode(self._identity.read_bytes())
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def _found(self) -> psutil.Process | None:
        if self._started is not None:
            self._started.poll()  # a child that ended stays in the process table until its parent polls it
        known = self._known()
        if known is None:
            return None
        try:
            found = psutil.Process(known.pid)
            return found if start_of(found) == known.started and not _is_gone(found) else None
        except psutil.NoSuchProcess:
            return None

    @property
    def before(self) -> Mapping[str, int]:
        """The figures from before the last start."""
        known = self._known()
        return {} if known is None else known.before

    @property
    def was_ready(self) -> bool:
        """Whether the last started process was seen to do its work (``note_ready``)."""
        known = self._known()
        return known is not None and known.was_ready

    def note_ready(self) -> None:
        """Note that the process does its work. Raises ``OSError``."""
        known = self._known()
        if known is not None and not known.was_ready:
            self._remember(msgspec.structs.replace(known, was_ready=True))

    @property
    def pid(self) -> int | None:
        """The process's id; None if it does not run."""
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

    def cpu_s(self) -> float:
        """Return the CPU time of the process and its descendants, in seconds; 0 if it does not run."""
        found = self._found()
        used_s = 0.0
        with contextlib.suppress(psutil.NoSuchProcess):
            for one in [] if found is None else [found, *found.children(recursive=True)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    used_s += sum(one.cpu_times()[:2])
        return used_s

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal, and return whether the process was there."""
        found = self._found()
        if found is None:
            return False
        try:
            found.send_signal(number)
        except psutil.NoSuchProcess:
            return False
        return True

    def wait(self, timeout_s: float) -> bool:
        """Wait for the process to end, and return whether it did within the time-out."""
        return _becomes(lambda: self._found() is None, timeout_s)

    def kill(self) -> None:
        """Kill the process and its descendants, paused or not, and wait for their end. Raises ``TimeoutError``."""
        found = self._found()
        if found is None:
            return
        family = [found]
        with contextlib.suppress(psutil.NoSuchProcess):
            family += found.children(recursive=True)
        for one in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        if not _becomes(lambda: all(map(_is_gone, family)), KILL_TIMEOUT_S):
            alive = [one for one in family if not _is_gone(one)]
            pids = ", ".join(str(one.pid) for one in alive)
            raise TimeoutError(f"still there {KILL_TIMEOUT_S:.0f} s after SIGKILL: process {pids}")
