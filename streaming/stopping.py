"""Obey SIGTERM and SIGINT at any moment.

Until a job begins to claim, nothing is lost if it is broken off anywhere, and a call of Spark's may take minutes. So a
signal breaks off the running call. Later signals are only noted, because a batch must not be cut off.
"""

import signal
import threading
from types import FrameType

_KILLED_TIMEOUT_S = 10.0


class StoppedError(BaseException):
    """A signal stopped the job before it decided anything.

    It is no ``Exception``, because Spark's bridge to its JVM would take it for a failure of the network.
    """


class StopSignals:
    """Whether a signal has asked this process to stop. Only the main thread may call ``obey``."""

    def __init__(self) -> None:
        self.stopping = threading.Event()
        self._breaks_off = True
        # Whether a signal has broken off what ran.
        self.has_broken_off = False

    def obey(self) -> None:
        """Handle the signals from now on. Spark sets handlers of its own, so call it again after Spark."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def finish_batches(self) -> None:
        """Only note signals from now on. Raises ``StoppedError`` if one has come."""
        self._breaks_off = False
        if self.stopping.is_set():
            raise StoppedError

    def break_off(self) -> None:
        """End Spark's processes, so that every waiting call of its JVM ends."""
        self.has_broken_off = self.stopping.is_set()
        kill_children()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping.set()
        if self._breaks_off:
            # Once, because it must not break off what follows from it.
            self._breaks_off, self.has_broken_off = False, True
            raise StoppedError


def kill_children() -> None:
    """Kill the processes that this one has started. A call that was broken off may still wait in Spark's JVM."""
    # A bare install has no such package, and imports this module.
    import psutil

    children = psutil.Process().children(recursive=True)
    for child in children:
        # It may end at any moment.
        try:
            child.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(children, _KILLED_TIMEOUT_S)
