"""The logs of an embedded bus, for a client."""

import time

from isrflow.contract import SQLITE
from isrflow.sqlite import decision_table
from isrflow.sqlite.bus_file import Access
from isrflow.sqlite.log_file import LogFile

POLL_INTERVAL_S = 0.05


class SqliteLog(LogFile):
    """An existing bus file, opened to publish events and to read decisions."""

    def __init__(self, path: str) -> None:
        super().__init__(path, Access.WRITE)

    def newest_decision(self) -> tuple[int, int]:
        """Return the place of the newest decision, or a place before all decisions."""
        with self._errors(), self._snapshot() as connection:
            return decision_table.newest(connection) or (0, -1)

    def thinned(self) -> tuple[int, int]:
        """Return the place up to which retention has left only some decisions."""
        with self._errors(), self._snapshot():
            return self._removed_up_to()

    def blocker(self) -> str:
        """Return nothing, because an open transaction on a file keeps no events from being decided."""
        return ""

    def wait(self, timeout_s: float) -> None:
        """Return when another process has written, or after ``timeout_s``."""
        deadline_s = time.monotonic() + timeout_s
        while not self.changed() and (left_s := deadline_s - time.monotonic()) > 0:
            time.sleep(min(POLL_INTERVAL_S, left_s))


def open_log(url: str) -> SqliteLog:
    """Open the log of the bus at ``url`` (``bus_url.BusKind``)."""
    return SqliteLog(url.removeprefix(SQLITE))
