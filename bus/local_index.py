"""The partition index of a bus that cannot hold one itself: a file in the cache, brought up to date by each search.

The first search reads all decisions, and each later one only the new ones. Decisions that retention has removed are
dropped here too, so the file has a bound. It may be lost at any time, because it can be made again from the bus.
"""

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from bus import partition_index
from bus.decided_runs import runs_in
from bus.interface import AFTER_ALL_OF, BusError, Decided

_DECISIONS_PER_READ = 20_000
_LOCK_TIMEOUT_S = 30.0

# Returns decisions after (seq, index), up to a number of them.
Read = Callable[[tuple[int, int], int], list[Decided]]


class LocalIndex:
    """The index in the file ``path``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def seqs_about(
        self, read: Read, gone: int, decided: int, topic: str, partition: int, before: int, limit: int
    ) -> list[int]:
        """Take in what was decided through the seq ``decided``, and find the seqs about a partition.

        The bus no longer has all decisions on the events through the seq ``gone``.
        """
        try:
            with contextlib.closing(self._open()) as connection:
                self._catch_up(connection, read, decided)
                _forget(connection, gone)
                return partition_index.seqs_about(connection, topic, partition, before, limit)
        except sqlite3.Error as error:
            raise BusError(f"the index {self._path}: {error}; it is only a cache and may be removed") from error

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_LOCK_TIMEOUT_S, isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        for statement in partition_index.SCHEMA:
            connection.execute(statement)
        return connection

    def _catch_up(self, connection: sqlite3.Connection, read: Read, decided: int) -> None:
        while (after := _last_seq(connection)) < decided:
            for through, decisions in _whole_events(read, after, decided):
                connection.execute("BEGIN IMMEDIATE")
                if _last_seq(connection) != after:
                    # Another process has taken them in meanwhile.
                    connection.execute("ROLLBACK")
                    break
                partition_index.add(connection, runs_in(decisions), through)
                connection.execute("COMMIT")
                after = through


def _forget(connection: sqlite3.Connection, gone: int) -> None:
    is_left = True
    while is_left:
        connection.execute("BEGIN IMMEDIATE")
        # Some of the last event's decisions may still be there.
        is_left = partition_index.remove_old(connection, gone - 1)
        connection.execute("COMMIT")


def _last_seq(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(last_seq), 0) FROM index_eras").fetchone()[0])


def _whole_events(read: Read, after: int, decided: int) -> Iterator[tuple[int, list[Decided]]]:
    """Yield the decisions after the event ``after`` in parts that end with all decisions on an event, and its seq."""
    place, waiting = (after, AFTER_ALL_OF), list[Decided]()
    while page := [one for one in read(place, _DECISIONS_PER_READ) if one.seq <= decided]:
        place = (page[-1].seq, page[-1].idx)
        waiting += page
        whole = [one for one in waiting if one.seq < place[0]]
        if whole:
            yield whole[-1].seq, whole
            waiting = waiting[len(whole) :]
    yield decided, waiting
