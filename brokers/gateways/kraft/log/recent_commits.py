"""How long commits took lately, and how much they added: over the last half to whole minute, as in Kafka's metrics."""

from typing import NamedTuple

WINDOW_S = 30.0


class _Window(NamedTuple):
    """What was committed from ``begin_s`` on."""

    begin_s: float
    commits: int = 0
    spent_s: float = 0.0
    records: int = 0


class RecentCommits:
    """The commits of this window and of the one before it. Times are of a steady clock, in seconds."""

    def __init__(self, now_s: float) -> None:
        # Replaced as a whole, because other threads read it.
        self._windows = (_Window(now_s), _Window(now_s))

    def add(self, now_s: float, spent_s: float, records: int) -> None:
        """Count a commit that took ``spent_s``."""
        before, window = self._at(now_s)
        window = window._replace(
            commits=window.commits + 1, spent_s=window.spent_s + spent_s, records=window.records + records
        )
        self._windows = (before, window)

    def latency_s(self, now_s: float) -> float:
        """Return how long a commit took on average; 0 if there was none."""
        windows = self._at(now_s)
        commits = sum(one.commits for one in windows)
        return sum(one.spent_s for one in windows) / commits if commits else 0.0

    def records_per_s(self, now_s: float) -> float:
        """Return how many records were committed in a second on average."""
        windows = self._at(now_s)
        return sum(one.records for one in windows) / max(WINDOW_S, now_s - windows[0].begin_s)

    def _at(self, now_s: float) -> tuple[_Window, _Window]:
        """Return the window before and that of ``now_s``."""
        before, window = self._windows
        late_s = now_s - window.begin_s
        if late_s < WINDOW_S:
            return before, window
        if late_s < 2 * WINDOW_S:
            return window, _Window(window.begin_s + WINDOW_S)
        return _Window(now_s - WINDOW_S), _Window(now_s)
