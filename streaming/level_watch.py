"""A standby's look at the level of the bus, because a release that does not support it must not take over."""

from bus.clock import steady_ms
from bus.image import read_cluster
from bus.interface import Bus

INTERVAL_MS = 5_000
# A look reads the whole state: it takes a hundredth of the time at most.
REST_FACTOR = 100


class LevelWatch:
    """A look at the level now and then, if anything was decided since the last one."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._seq = -1
        self._due_ms = steady_ms()

    def look(self) -> None:
        """Look if it is time. Raises ``LevelError``, or another error if the state cannot be read."""
        began_ms = steady_ms()
        if began_ms < self._due_ms or (seq := self._bus.decided_seq()) == self._seq:
            return
        read_cluster(self._bus.image())
        self._seq, took_ms = seq, steady_ms() - began_ms
        self._due_ms = steady_ms() + max(INTERVAL_MS, REST_FACTOR * took_ms)
