"""The embedded bus: one SQLite file in WAL mode that several processes share."""

import contextlib
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from isrflow.bus.interface import (
    MAX_EVENT_BYTES,
    BusError,
    Claim,
    Decided,
    Entry,
    FencedError,
    Image,
    Page,
    TrimmedError,
    draw_bus_id,
)
from isrflow.bus.patience import row_of
from isrflow.state.rules import NEWEST_RULES

SCHEMA_VERSION = 1
BUSY_TIMEOUT_MS = 20_000

_SCHEMA = """
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT, patient INTEGER NOT NULL, raw BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS decisions (
    seq INTEGER NOT NULL, idx INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (seq, idx)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pages (
    shard INTEGER NOT NULL, page INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (shard, page));
CREATE TABLE IF NOT EXISTS claims (
    controller_epoch INTEGER PRIMARY KEY, controller_id TEXT NOT NULL, seq INTEGER NOT NULL, time_ms INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""


class EmbeddedBus:
    """Implement ``Bus`` on one SQLite file; seq is the rowid, so publishing order is the total order.

    An instance may be used by several threads: each gets a connection of its own.
    """

    seq_step = 1

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._local = threading.local()
        self._connections: list[sqlite3.Connection] = []
        self._lock = threading.Lock()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            self._connection().executescript(_SCHEMA)
            version = self._mark("schema_version") or self._first_use()
        if version != SCHEMA_VERSION:
            raise BusError(f"bus {self.path} has schema version {version}; this isrflow reads {SCHEMA_VERSION}")

    def _first_use(self) -> int:
        with self._write() as connection:
            connection.execute("INSERT OR IGNORE INTO marks VALUES ('schema_version', ?)", (SCHEMA_VERSION,))
        return SCHEMA_VERSION

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_MS / 1000, isolation_level=None, check_same_thread=False
            )
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
            self._local.connection = connection
            with self._lock:
                self._connections.append(connection)
        return connection

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BusError(f"bus {self.path}: {error}") from error

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """One write transaction: all of it, or on any error none."""
        connection = self._connection()
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
        except BaseException:
            # After some errors, a full disk for one, SQLite has rolled back by itself.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Reads that see one moment."""
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")

    def _mark(self, name: str) -> int:
        row = self._connection().execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    @staticmethod
    def _raise_mark(connection: sqlite3.Connection, name: str, value: int) -> None:
        connection.execute(
            "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
            (name, value),
        )

    def publish(self, events: Sequence[bytes]) -> int:
        for raw in events:
            if len(raw) > MAX_EVENT_BYTES:
                raise BusError(f"an event of {len(raw)} bytes is over the limit of {MAX_EVENT_BYTES}")
        rows = [row_of(raw) for raw in events]
        with self._errors():
            if not rows:
                return self.last_seq()
            with self._write() as connection:
                connection.executemany("INSERT INTO events (kind, patient, raw) VALUES (?, ?, ?)", rows)
                return int(connection.execute("SELECT max(seq) FROM events").fetchone()[0])

    def in_order(self, events: Sequence[bytes]) -> int:
        return len(events)

    def last_seq(self) -> int:
        with self._errors():
            row = self._connection().execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
        return int(row[0]) if row else 0

    def offsets_came(self, after: int) -> bool:
        with self._errors():
            row = self._connection().execute(
                "SELECT EXISTS (SELECT 1 FROM events WHERE seq > ? AND kind = 'log_end_offset')", (after,)
            )
            return bool(row.fetchone()[0])

    def read(self, after: int, through: int) -> list[Entry]:
        with self._errors(), self._snapshot() as connection:
            trimmed = self._mark("trimmed")
            if after < trimmed and through > after:
                raise TrimmedError(f"bus {self.path}: events up to {trimmed} were removed; {after + 1} was asked for")
            rows = connection.execute(
                "SELECT seq, raw FROM events WHERE seq > ? AND seq <= ? ORDER BY seq", (after, through)
            )
            return [Entry(*row) for row in rows]

    def batch_end(self, after: int, count: int, *, wait: bool) -> int:
        """Return where a batch that starts after ``after`` ends: ``count`` events on, or at the newest.

        With ``wait``, events that only the next tick makes anything of (heartbeats, offsets) make no
        batch of their own: until something else comes the answer is ``after``.
        """
        with self._errors(), self._snapshot() as connection:
            if (
                wait
                and not connection.execute(
                    "SELECT EXISTS (SELECT 1 FROM events WHERE seq > ? AND NOT patient)", (after,)
                ).fetchone()[0]
            ):
                return after
            row = connection.execute(
                "SELECT coalesce(max(seq), ?) FROM (SELECT seq FROM events WHERE seq > ? ORDER BY seq LIMIT ?)",
                (after, after, count),
            )
            return int(row.fetchone()[0])

    def load(self, entries: Sequence[Entry]) -> None:
        """Put a recorded log, with its own seqs, onto this bus."""
        rows = [(entry.seq, *row_of(entry.raw)) for entry in entries]
        with self._errors(), self._write() as connection:
            connection.executemany("INSERT INTO events (seq, kind, patient, raw) VALUES (?, ?, ?, ?)", rows)

    def claim(self, controller_id: str, settings: dict[str, str], time_ms: int) -> Claim:
        with self._errors(), self._write() as connection:
            epoch = self.claimed_epoch() + 1
            started = {
                "kind": "controller_started",
                "time_ms": time_ms,
                "controller_id": controller_id,
                "controller_epoch": epoch,
                "settings": settings,
                "rules_version": NEWEST_RULES,
            }
            cursor = connection.execute(
                "INSERT INTO events (kind, patient, raw) VALUES (?, ?, ?)", row_of(msgspec.json.encode(started))
            )
            seq = int(cursor.lastrowid or 0)
            connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", (epoch, controller_id, seq, time_ms))
            connection.execute("INSERT OR IGNORE INTO marks VALUES ('bus_id', ?)", (draw_bus_id(),))
            return Claim(epoch, seq)

    def claimed_epoch(self) -> int:
        with self._errors():
            return int(
                self._connection().execute("SELECT coalesce(max(controller_epoch), 0) FROM claims").fetchone()[0]
            )

    def bus_id(self) -> int:
        with self._errors():
            return self._mark("bus_id")

    def commit(self, controller_epoch: int, through: int, decisions: Sequence[Decided], pages: Sequence[Page]) -> None:
        with self._errors(), self._write() as connection:
            claimed = self.claimed_epoch()
            if claimed != controller_epoch:
                raise FencedError(f"controller epoch {claimed} was claimed; this job holds {controller_epoch}")
            decided_seq = self._mark("decided")
            self._check_same(connection, [decided for decided in decisions if decided.seq <= decided_seq])
            if through <= decided_seq:
                return
            fresh = [decided for decided in decisions if decided.seq > decided_seq]
            connection.executemany("INSERT INTO decisions VALUES (?, ?, ?)", fresh)
            connection.executemany("INSERT OR REPLACE INTO pages VALUES (?, ?, ?)", pages)
            self._raise_mark(connection, "decided", through)

    def _check_same(self, connection: sqlite3.Connection, decisions: Sequence[Decided]) -> None:
        """A batch that comes again after a kill must say what it said before."""
        for decided in decisions:
            row = connection.execute(
                "SELECT body FROM decisions WHERE seq = ? AND idx = ?", (decided.seq, decided.idx)
            ).fetchone()
            if row is None or row[0] != decided.body:
                raise BusError(f"bus {self.path}: decision ({decided.seq}, {decided.idx}) came out differently")

    def decided_seq(self) -> int:
        with self._errors():
            return self._mark("decided")

    def decisions(self, after: tuple[int, int], limit: int) -> list[Decided]:
        with self._errors(), self._snapshot() as connection:
            trimmed = self._mark("trimmed_decisions")
            if 0 < after[0] < trimmed:
                raise TrimmedError(
                    f"bus {self.path}: decisions of events up to {trimmed} were removed: "
                    f"read on from {trimmed + 1}, or take the state as it is"
                )
            rows = connection.execute(
                "SELECT seq, idx, body FROM decisions WHERE (seq, idx) > (?, ?) ORDER BY seq, idx LIMIT ?",
                (*after, limit),
            )
            return [Decided(*row) for row in rows]

    def changed(self) -> bool:
        # data_version moves when another connection commits, this instance's other threads included.
        with self._errors():
            version = int(self._connection().execute("PRAGMA data_version").fetchone()[0])
        seen = getattr(self._local, "data_version", None)
        self._local.data_version = version
        return bool(version != seen)

    def image(self) -> Image:
        with self._errors(), self._snapshot() as connection:
            rows = connection.execute("SELECT shard, page, body FROM pages ORDER BY shard, page")
            pages = [Page(*row) for row in rows]
            return Image(self._mark("decided"), pages)

    def passed(self, through: int) -> None:
        with self._errors(), self._write() as connection:
            self._raise_mark(connection, "passed", through)

    def trim(self, retain: int) -> int:
        with self._errors(), self._write() as connection:
            through = min(self._mark("passed"), self._mark("decided"), self.last_seq() - retain)
            if through <= self._mark("trimmed"):
                return 0
            removed = connection.execute("DELETE FROM events WHERE seq <= ?", (through,)).rowcount
            # Whoever has followed up to the last one that goes has missed none.
            row = connection.execute("SELECT coalesce(max(seq), 0) FROM decisions WHERE seq <= ?", (through,))
            self._raise_mark(connection, "trimmed_decisions", row.fetchone()[0])
            connection.execute("DELETE FROM decisions WHERE seq <= ?", (through,))
            self._raise_mark(connection, "trimmed", through)
            return int(removed)

    def close(self) -> None:
        with self._lock:
            for connection in self._connections:
                connection.close()
            self._connections.clear()
        self._local = threading.local()


def now_ms() -> int:
    """Read the wall clock: milliseconds since the Unix epoch, as events carry it."""
    return time.time_ns() // 1_000_000
