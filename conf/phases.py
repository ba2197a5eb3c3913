"""The phases of a process's start, so that one who waits for it sees what it does."""

import time
from collections.abc import Callable

_Tell = Callable[[str], object]


class Phases:
    """The phases until now. The log names each when it begins, and in the end how long each lasted."""

    def __init__(self, tell: _Tell = lambda phase: None, clock_s: Callable[[], float] = time.monotonic) -> None:
        """Call ``tell`` with the name of each phase as it begins, and with no name at the end."""
        self._tell = tell
        self._clock_s = clock_s
        # The phase that lasts, and since when; None before the first and after the last.
        self._now: tuple[str, float] | None = None
        self._lasted_s: dict[str, float] = {}

    def begin(self, phase: str) -> None:
        """End the phase before, and begin one with a name such as ``reading the bus``."""
        self._end_phase()
        self._now = (phase, self._clock_s())
        self._tell(phase)
        _log("start", phase=phase)

    def end(self) -> None:
        """End the start. Nothing happens if it is over."""
        if self._now is None:
            return
        self._end_phase()
        self._tell("")
        _log("start is over", seconds={phase: round(lasted_s, 1) for phase, lasted_s in self._lasted_s.items()})
        self._lasted_s = {}

    @property
    def told(self) -> str:
        """What the process does and for how long; empty once it has started."""
        # Read once, because another thread may end it.
        now = self._now
        return told(now[0], self._clock_s() - now[1]) if now else ""

    def _end_phase(self) -> None:
        if self._now is not None:
            phase, since_s = self._now
            self._now = None
            self._lasted_s[phase] = self._lasted_s.get(phase, 0.0) + self._clock_s() - since_s


def told(phase: str, lasted_s: float) -> str:
    """Return how a phase is told to one who waits."""
    return f"it has been {phase} for {lasted_s:.0f} s"


def _log(event: str, **facts: object) -> None:
    # Importing it takes long, and commands that start nothing import this module, too.
    import structlog

    structlog.get_logger("isrflow.start").info(event, **facts)
