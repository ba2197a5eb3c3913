"""The logs in the file of an embedded bus: events, which all programs append, and decisions, which they read."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from isrflow.clock import now_ms
from isrflow.column_blocks import DecidedColumns
from isrflow.contract import DECISIONS_BYTES_MAX, MAX_EVENT_BYTES, Decided
from isrflow.decision_rows import RowReader
from isrflow.engine_only import refuse_engine_kinds
from isrflow.errors import BusError, NoBusError, TrimmedError
from isrflow.sqlite import checksums, decision_table
from isrflow.sqlite.bus_file import Access, BusFile
from isrflow.sqlite.deferrable import Row, row_of
from isrflow.sqlite.file_identity import check_same
from isrflow.sqlite.lock_wait import LOCK_TIMEOUT_S, while_locked
from isrflow.sqlite.schema import SCHEMA, SCHEMA_VERSION, TABLES


class LogFile(BusFile):
    """One SQLite file with the events and decisions of a bus.

    Several threads may use one instance. An instance opened to ``READ`` changes nothing, and only ``MAKE`` makes
    tables. The seq is the rowid, so the order of publishing is the total order. ``bus.embedded.EmbeddedBus`` adds what
    only the engine does.
    """

    # The statements that create the tables of a new file.
    tables: tuple[str, ...] = SCHEMA

    def __init__(
        self, path: Path | str, access: Access = Access.MAKE, *, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> None:
        super().__init__(path, access, lock_timeout_s)
        self._rows = RowReader(f"bus {self.path}")
        try:
            with self._errors():
                self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        with self._snapshot() as connection:
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables and self._access is not Access.MAKE:
            raise NoBusError(f"there is no bus at {self.path}: start the engine with 'isrflow run'.")
        if tables and not tables >= TABLES:
            raise BusError(f"{self.path} is not a bus: it is another program's SQLite file")
        if self._access is not Access.READ:
            self._when_unlocked(self._connection(), "PRAGMA journal_mode = WAL")
        if not tables:
            with self._write() as connection:
                for statement in self.tables:
                    connection.execute(statement)
                connection.execute("INSERT OR IGNORE INTO marks VALUES ('schema_version', ?)", (SCHEMA_VERSION,))
        version = self._mark("schema_version")
        if version != SCHEMA_VERSION:
            raise BusError(f"bus {self.path} has schema version {version}; this isrflow reads {SCHEMA_VERSION}")

    def publish(self, events: Sequence[bytes]) -> int:
        """Append events in order, all or none, and return the last one's seq. Raises ``EngineOnlyError``."""
        refuse_engine_kinds(events)
        return self.publish_own(events)

    def publish_own(self, events: Sequence[bytes]) -> int:
        """Publish events of any kind on behalf of the engine."""
        for raw in events:
            if len(raw) > MAX_EVENT_BYTES:
                raise BusError(f"an event of {len(raw)} bytes is over the limit of {MAX_EVENT_BYTES}")
        rows = list(map(row_of, events))
        with self._errors():
            if not rows:
                return self.last_seq()
            with self._write() as connection:
                return append(connection, rows)

    def last_seq(self) -> int:
        """Return the newest event's seq, 0 if there was none yet."""
        with self._errors(), self._snapshot() as connection:
            row = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
        return int(row[0]) if row else 0

    def decided_seq(self) -> int:
        """Return the last event whose decisions are in the log."""
        with self._errors():
            return self._mark("decided")

    def decisions(
        self, after: tuple[int, int], limit: int, bytes_max: int = DECISIONS_BYTES_MAX, *, passing_over: bool = False
    ) -> list[Decided]:
        """Return up to ``limit`` decisions after (seq, index), in order, with up to ``bytes_max`` bytes.

        Raises ``TrimmedError`` if retention has removed any of them, unless ``passing_over`` skips those.
        """
        with self._errors(), self._snapshot() as connection:
            start = self._start_after(after, passing_over=passing_over)
            return decision_table.read_after(connection, start, limit, bytes_max, self._rows)

    def decided_columns(self, after: tuple[int, int], limit: int) -> list[Decided | DecidedColumns]:
        """Return decisions after (seq, index), in order, with blocks of columns as they are.

        The last row is the one that reaches ``limit`` decisions or ``DECISIONS_BYTES_MAX``. Raises ``TrimmedError``.
        """
        with self._errors(), self._snapshot() as connection:
            start = self._start_after(after)
            return decision_table.read_columns_after(connection, start, limit, DECISIONS_BYTES_MAX, self._rows)

    def _start_after(self, after: tuple[int, int], *, passing_over: bool = False) -> tuple[int, int]:
        """Return the place from which to read on. Raises ``TrimmedError`` if decisions after ``after`` were removed."""
        gone = self._removed_up_to()
        if after >= gone or passing_over:
            return after
        if after[0] > 0:
            raise TrimmedError(
                f"bus {self.path}: decisions of events up to {gone[0]} were removed: "
                f"read on from {gone[0] + 1}, or start from the current state"
            )
        # Retention has left only some decisions before ``gone``, so a reader of all decisions starts after them.
        return gone

    def _removed_up_to(self) -> tuple[int, int]:
        return self._mark("trimmed_decisions"), self._mark("trimmed_decision_idx") - 1

    def changed(self) -> bool:
        """Return whether anything may have been written since this thread last asked. Cheap enough to ask often."""
        # data_version changes when another connection commits. Each thread of this instance has its own connection.
        with self._errors():
            self._reopen_if_written()
            held = self._held()
            check_same(self.path, self._identity)
            version = while_locked(
                self.path,
                self._lock_timeout_s,
                lambda: int(held.connection.execute("PRAGMA data_version").fetchone()[0]),
            )
        seen, held.data_version = held.data_version, version
        return version != seen


def append(connection: sqlite3.Connection, rows: Sequence[Row]) -> int:
    """Append events that enter now, and return the last one's seq.

    In a write transaction entry times have the same order as seqs, unless the machine's clock goes back.
    """
    entered_ms = now_ms()
    connection.executemany(
        "INSERT INTO events (entered_ms, kind, patient, raw, crc) VALUES (?, ?, ?, ?, ?)",
        checksums.with_crc((entered_ms, *row) for row in rows),
    )
    return int(connection.execute("SELECT max(seq) FROM events").fetchone()[0])
