"""The file of an embedded bus: connections, transactions, and the check that it is still the same file.

The problem: several processes and threads share one SQLite file for weeks, and people copy, restore and delete files.
SQLite keeps writing to a deleted file, and no other process ever sees what it writes.

    path ──► which file is there?   same inode?          no ──► error
                                    same bus_id in it?   no ──► error: overwritten in place
                                    seq not lower?       no ──► error: an older backup

So each transaction makes these three checks when it begins, and the first one again when it has committed. They cost
one ``stat`` and one short query.

A reader must not change anything, not even the folder. SQLite in WAL mode makes ``-wal`` and ``-shm`` files for a
reader too, so a reader of a file without a writer opens it as immutable: without locks. Such a read is trusted only if
the file is unchanged afterwards. As soon as a writer appears, the reader opens a normal connection.

Do not inspect the file with plain ``open``. When a process closes any descriptor of a file, it loses all its POSIX
locks on that file, SQLite's included (``file_identity``).
"""

import contextlib
import enum
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from isrflow.errors import BusError
from isrflow.sqlite.connections import Connections, Held
from isrflow.sqlite.file_identity import check_same, look, unwritten_state
from isrflow.sqlite.lock_wait import LOCK_TOLD_S, while_locked

# SQLite truncates the write-ahead log to this size when it starts over at the log's beginning.
JOURNAL_BYTES_KEPT = 16 * 1024 * 1024
_MAY_NOT_WRITE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN})


class Access(enum.Enum):
    """What a process may do: make a missing file, write to an existing one, or only read."""

    MAKE = enum.auto()
    WRITE = enum.auto()
    READ = enum.auto()


class _Seen(NamedTuple):
    """Which bus was in the file when it was last checked, and how far its events went."""

    bus_id: int = 0
    seq: int = 0


class BusFile:
    """One SQLite file in WAL mode that several processes share; each thread has its own connection.

    The bus waits for a lock that another process holds, and logs the wait. Each use checks that no other file took the
    place of this one, because no other process would see what is written to it.
    """

    def __init__(self, path: Path | str, access: Access, lock_timeout_s: float) -> None:
        self.path = Path(path)
        self._access = access
        self._lock_timeout_s = lock_timeout_s
        self._busy_timeout_ms = int(min(LOCK_TOLD_S, lock_timeout_s) * 1_000)
        self._lock = threading.Lock()
        self._seen = _Seen()
        self._identity = look(self.path, make=access is Access.MAKE)
        self._connections = Connections(self.path, self._identity)

    def _held(self) -> Held:
        held = self._connections.mine()
        if held is None:
            # A file without a write-ahead log has no writer. Reading it as immutable changes neither it nor its folder.
            reads = self._access is Access.READ
            unwritten = unwritten_state(self.path) if reads else None
            mode = "rw" if not reads else "ro" if unwritten is None else "ro&immutable=1"
            connection = sqlite3.connect(
                f"file:{quote(str(self.path.absolute()))}?mode={mode}",
                uri=True,
                timeout=self._busy_timeout_ms / 1_000,
                isolation_level=None,
                check_same_thread=False,
            )
            held = Held(connection, unwritten)
            self._connections.hold(held)
            check_same(self.path, self._identity)
            if self._access is not Access.READ:
                self._when_unlocked(connection, "PRAGMA synchronous = FULL")
                self._when_unlocked(connection, f"PRAGMA journal_size_limit = {JOURNAL_BYTES_KEPT}")
        return held

    def _connection(self) -> sqlite3.Connection:
        return self._held().connection

    def _reopen_if_written(self) -> None:
        """Open a new connection if the file was read as immutable and has been written since."""
        held = self._connections.mine()
        if held is not None and held.unwritten is not None and held.unwritten != unwritten_state(self.path):
            self._connections.drop_mine()

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            with self._connections.using():
                yield
        except sqlite3.Error as error:
            hint = ""
            if self._access is Access.READ and getattr(error, "sqlite_errorcode", 0) & 0xFF in _MAY_NOT_WRITE:
                hint = ": an engine that died left it open, and this user may not write beside it: start the engine"
            raise BusError(f"bus {self.path}: {error}{hint}") from error

    def _when_unlocked(self, connection: sqlite3.Connection, *statements: str) -> None:
        """Execute statements together, and repeat them while another process has the file locked."""

        def execute() -> None:
            try:
                for statement in statements:
                    connection.execute(statement).fetchone()
            except sqlite3.Error:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

        while_locked(self.path, self._lock_timeout_s, execute)

    @contextlib.contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        """Run one write transaction; any error rolls all of it back."""
        connection, seen = self._connection(), self._seen
        self._when_unlocked(connection, "BEGIN IMMEDIATE")
        try:
            self._check_same_bus(connection, seen)
            yield connection
            seen = _seen_now(connection)
        except BaseException:
            # SQLite itself has rolled back after some errors, such as a full disk.
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
        check_same(self.path, self._identity)
        self._note(seen)

    @contextlib.contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that reads a consistent view of one moment, or of the transaction that it is in."""
        self._reopen_if_written()
        held, seen = self._held(), self._seen
        connection = held.connection
        if connection.in_transaction:
            yield connection
            return
        # The first read takes the snapshot. After it there is no lock to wait for.
        self._when_unlocked(connection, "BEGIN", "SELECT 1 FROM sqlite_master")
        try:
            self._check_same_bus(connection, seen)
            yield connection
        except sqlite3.DatabaseError:
            self._check_unwritten(held)
            raise
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        self._check_unwritten(held)

    def _check_unwritten(self, held: Held) -> None:
        """Refuse what was read without a lock if a writer came meanwhile."""
        if held.unwritten is not None and held.unwritten != unwritten_state(self.path):
            raise BusError(f"bus {self.path}: a writer opened it during this read: try again")

    def _check_same_bus(self, connection: sqlite3.Connection, seen: _Seen) -> None:
        """Check that this is the same file, with the same bus in it, and that it has not gone back behind ``seen``.

        A file that was overwritten in place has the same inode.
        """
        check_same(self.path, self._identity)
        now = _seen_now(connection)
        if seen.bus_id not in (0, now.bus_id) or now.seq < seen.seq:
            raise BusError(
                f"bus {self.path}: its content was replaced while this process had it open (its last event was "
                f"{seen.seq} and is now {now.seq}): restart all processes of this bus"
            )
        self._note(now)

    def _note(self, seen: _Seen) -> None:
        with self._lock:
            self._seen = _Seen(seen.bus_id, max(seen.seq, self._seen.seq))

    def _mark(self, name: str) -> int:
        with self._snapshot() as connection:
            row = connection.execute("SELECT value FROM marks WHERE name = ?", (name,)).fetchone()
        return int(row[0]) if row else 0

    @staticmethod
    def _raise_mark(connection: sqlite3.Connection, name: str, value: int) -> None:
        connection.execute(
            "INSERT INTO marks VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = max(value, excluded.value)",
            (name, value),
        )

    @staticmethod
    def _set_mark(connection: sqlite3.Connection, name: str, value: int) -> None:
        connection.execute("INSERT OR REPLACE INTO marks VALUES (?, ?)", (name, value))

    def close(self) -> None:
        self._connections.close()


def _seen_now(connection: sqlite3.Connection) -> _Seen:
    try:
        row = connection.execute(
            "SELECT coalesce((SELECT value FROM marks WHERE name = 'bus_id'), 0),"
            " coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0)"
        ).fetchone()
    except sqlite3.OperationalError:
        # There are no tables yet, or they are not ours. Opening the bus reports that.
        return _Seen()
    return _Seen(*row)
