"""The past of an embedded bus: read old events and states, and remove them by retention."""

import sqlite3
from collections.abc import Iterable

from bus import former_pages, partition_index
from bus.event_table import entries_between
from bus.interface import Entry, Image, Snapshot, TrimmedError
from bus.past import ALL_EVENTS
from bus.retention import SLICE_ROWS, WalBound, remove_decisions, remove_events
from bus.thinning import thin_decisions, thin_events
from isrflow.sqlite.log_file import LogFile


class EmbeddedHistory(LogFile):
    """The part of an embedded bus that reads back what is on it, and removes what is too old."""

    _wal: WalBound

    def recorded(self, after: int, through: int, limit: int, bytes_max: int) -> list[Entry]:
        with self._errors(), self._snapshot() as connection:
            return self._first_between(connection, after, through, limit, bytes_max)

    def _first_between(
        self, connection: sqlite3.Connection, after: int, through: int, limit: int, bytes_max: int
    ) -> list[Entry]:
        sizes = connection.execute(
            "SELECT seq, length(raw) FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?",
            (after, through, limit),
        )
        end = _last_within(sizes, bytes_max)
        return [] if end is None else entries_between(connection, after, end)

    def claim_seq(self) -> int:
        newest = "SELECT coalesce(max(seq), 0) FROM claims"
        with self._errors(), self._snapshot() as connection:
            return int(connection.execute(newest).fetchone()[0])

    def kept_after(self) -> int:
        with self._errors():
            return self._mark("trimmed")

    def seq_at(self, time_ms: int) -> int:
        """Do a binary search, because the table has no index by time. Events without an entry time count as old."""
        with self._errors(), self._snapshot() as connection:
            ends = "SELECT coalesce(min(seq), 1) - 1, coalesce(max(seq), 0) FROM events"
            low, high = connection.execute(ends).fetchone()
            found = 0
            while low < high:
                middle = (low + high) // 2
                seq, entered_ms = connection.execute(
                    "SELECT seq, entered_ms FROM events WHERE seq > ? ORDER BY seq LIMIT 1", (middle,)
                ).fetchone()
                if entered_ms is None or entered_ms <= time_ms:
                    found = low = seq
                else:
                    high = middle
            return found

    def seqs_about(self, topic: str, partition: int, before: int, limit: int) -> list[int]:
        with self._errors(), self._snapshot() as connection:
            return partition_index.seqs_about(connection, topic, partition, before, limit)

    def snapshots(self) -> list[Snapshot]:
        with self._errors(), self._snapshot() as connection:
            return former_pages.snapshots(connection)

    def snapshot(self, seq: int) -> Image:
        with self._errors(), self._snapshot() as connection:
            pages = former_pages.read(connection, seq, str(self.path))
        if pages is None:
            raise TrimmedError(f"bus {self.path}: there is no snapshot at seq {seq}, or retention has removed it")
        return Image(seq, pages)

    def passed(self, through: int) -> None:
        """Note that the checkpoint will never ask for events up to ``through`` again, so that they may be removed."""
        with self._errors(), self._write() as connection:
            self._raise_mark(connection, "passed", through)

    def forget(self, through: int) -> int:
        with self._errors():
            self._wal.enforce(self._connection(), self._busy_timeout_ms)
            with self._write() as connection:
                return self._remove_slice(connection, min(through, self._mark("passed"), self._mark("decided")))

    def _remove_slice(self, connection: sqlite3.Connection, through: int) -> int:
        trimmed = self._mark("trimmed")
        gone, left = 0, SLICE_ROWS
        if decisions := remove_decisions(connection, through, left):
            # A follower that has read the last removed decision has missed none.
            gone, seq, idx = decisions
            self._raise_trimmed_decisions(connection, (seq, idx))
            partition_index.remove_old(connection, seq - 1)
        # A slice removes events too. Otherwise the decisions that become removable all the time would always go first.
        if gone < left and (events := remove_events(connection, through, left - gone, trimmed)):
            gone += events.rows
            self._raise_mark(connection, "trimmed", events.last)
            self._set_mark(connection, "thinned_events", self._mark("thinned_events") - events.rows_thinned)
        if gone < left:
            gone += former_pages.drop(connection, self._mark("trimmed"), left - gone)
        return gone

    def thin(self, through: int, retain: int = ALL_EVENTS) -> int:
        with self._errors():
            self._wal.enforce(self._connection(), self._busy_timeout_ms)
            with self._write() as connection:
                through = min(through, self._mark("passed"), self._mark("decided"))
                return self._thin_slice(connection, through) or self._remove_surplus(connection, retain)

    def _thin_slice(self, connection: sqlite3.Connection, through: int) -> int:
        done, left = 0, SLICE_ROWS
        after = (self._mark("trimmed_decisions"), self._mark("trimmed_decision_idx") - 1)
        if decisions := thin_decisions(connection, after, through, left, f"bus {self.path}"):
            done = decisions.rows
            self._raise_trimmed_decisions(connection, decisions.last)
            if decisions.is_cut:
                return done
        if done < left and (events := thin_events(connection, self._mark("trimmed"), through, left - done)):
            done += events.rows
            self._raise_mark(connection, "trimmed", events.last)
            self._set_mark(connection, "thinned_events", self._mark("thinned_events") + events.rows_kept)
        if done < left:
            done += former_pages.drop(connection, self._mark("trimmed"), left - done)
        return done

    def _raise_trimmed_decisions(self, connection: sqlite3.Connection, last: tuple[int, int]) -> None:
        """Note up to where decisions may be missing, unless that is noted already."""
        if last > (self._mark("trimmed_decisions"), self._mark("trimmed_decision_idx") - 1):
            self._set_mark(connection, "trimmed_decisions", last[0])
            self._set_mark(connection, "trimmed_decision_idx", last[1] + 1)

    def _remove_surplus(self, connection: sqlite3.Connection, retain: int) -> int:
        """Remove a slice of the oldest events that thinning has left, so that ``retain`` of them stay."""
        surplus = min(self._mark("thinned_events") - retain, SLICE_ROWS)
        if surplus <= 0:
            return 0
        nth = connection.execute("SELECT seq FROM events ORDER BY seq LIMIT 1 OFFSET ?", (surplus - 1,)).fetchone()
        return self._remove_slice(connection, int(nth[0])) if nth else 0


def _last_within(sizes: Iterable[tuple[int, int]], bytes_max: int) -> int | None:
    """Return the seq of the last row that fits into ``bytes_max`` with those before it. The first one always fits."""
    last, total = None, 0
    for seq, size in sizes:
        total += size
        if last is not None and total > bytes_max:
            break
        last = seq
    return last
