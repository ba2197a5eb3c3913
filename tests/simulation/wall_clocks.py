"""The wall clocks of the hosts: each may be set and may drift, independently of the loop's time."""

from typing import NamedTuple

from tests.simulation.virtual_loop import START_MS, VirtualLoop


class Setting(NamedTuple):
    """A clock's error and its drift."""

    ahead_ms: int = 0
    drift: float = 0.0


class WallClocks:
    """The clocks of all hosts. A restart of a process does not change its host's clock."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._set: dict[str, Setting] = {}

    def now_ms(self, host: str) -> int:
        """Read a host's clock."""
        ahead_ms, drift = self._set.get(host, Setting())
        return START_MS + int(self._loop.now * 1000 * (1 + drift)) + ahead_ms

    def set(self, host: str, setting: Setting) -> None:
        """Set a host's clock."""
        self._set[host] = setting

    def set_right(self) -> None:
        """Set all clocks right."""
        self._set.clear()
