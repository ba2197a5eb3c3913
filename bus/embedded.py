"""The embedded bus: one SQLite file in WAL mode that several processes share."""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from bus import former_pages, partition_index
from bus.claim import check_not_overtaken, controller_started, draw_bus_id, epoch_after
from bus.clock import now_ms
from bus.decided_runs import DecidedRuns, runs_in
from bus.embedded_history import EmbeddedHistory
from bus.event_table import entries_between, has_kind, insert_recorded, newest_of
from bus.interface import (
    TICK_SOUGHT_MAX,
    BusError,
    Claim,
    Decided,
    DivergedError,
    Entry,
    FencedError,
    Image,
    Page,
    Snapshot,
    TrimmedError,
)
from bus.page_table import check_same_decisions, check_same_pages, read_pages, replace_pages, write_pages
from bus.retention import WalBound
from bus.weight import last_within
from conf.private_dir import private_dir
from isrflow.bus_url import EMBEDDED
from isrflow.contract import LOG_END_REPORTS
from isrflow.decision_blocks import rows_of
from isrflow.sqlite import decision_table
from isrflow.sqlite.bus_file import Access
from isrflow.sqlite.deferrable import row_of
from isrflow.sqlite.file_identity import obstacle_above
from isrflow.sqlite.lock_wait import LOCK_TIMEOUT_S
from isrflow.sqlite.log_file import append
from isrflow.sqlite.schema import SCHEMA

# Only the owner may read what a bus says about a cluster. SQLite gives -wal and -shm the same mode.
_FILE_MODE = 0o600


class EmbeddedBus(EmbeddedHistory):
    """The ``Bus`` in one SQLite file. The seq is the rowid, so the order of publishing is the total order.

    Several threads may use one instance. With ``Access.READ`` it changes nothing, and only with ``Access.MAKE`` does it
    make a file.
    """

    kind = EMBEDDED.name
    tables = (*SCHEMA, *partition_index.SCHEMA, *former_pages.TABLES)

    def __init__(
        self, path: Path | str, access: Access = Access.MAKE, *, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> None:
        if access is Access.MAKE:
            _make_file(Path(path))
        self._wal = WalBound(Path(path))
        super().__init__(path, access, lock_timeout_s=lock_timeout_s)

    def due_seq(self, after: int) -> int:
        with self._errors(), self._snapshot() as connection:
            return _last_due(connection, after, self.last_seq()) or after

    def log_ends_came(self, after: int) -> bool:
        with self._errors(), self._snapshot() as connection:
            return any(has_kind(connection, kind, after) for kind in LOG_END_REPORTS)

    def read(self, after: int, through: int) -> list[Entry]:
        with self._errors(), self._snapshot() as connection:
            self._check_kept(after, through)
            return entries_between(connection, after, through)

    def read_first(self, after: int, through: int, limit: int, bytes_max: int) -> list[Entry]:
        """Return the first of the events that ``read`` returns, up to ``limit`` of them.

        They have at most ``bytes_max`` bytes together, but there is at least one.
        """
        with self._errors(), self._snapshot() as connection:
            self._check_kept(after, through)
            return self._first_between(connection, after, through, limit, bytes_max)

    def _check_kept(self, after: int, through: int) -> None:
        trimmed = self._mark("trimmed")
        if after < trimmed and through > after:
            raise TrimmedError(f"bus {self.path}: events up to {trimmed} were removed; {after + 1} was asked for")

    def batch_end(self, after: int, count: int, bytes_max: int = 2**62, *, defer: bool) -> int:
        """Return the seq at which a batch that starts after ``after`` ends: up to ``count`` events on.

        The batch ends earlier if it would weigh more than ``bytes_max`` (``weight``), but has at least one event. With
        ``defer``, heartbeats and reports of log ends wait until another event follows them. If none does, return
        ``after``.
        """
        with self._errors(), self._snapshot() as connection:
            if defer and not _has_due(connection, after):
                return after
            end = last_within(connection, after, count, bytes_max)
            return (_last_due(connection, after, end) if defer else None) or end

    def load(self, entries: Sequence[Entry]) -> None:
        """Put a recorded log on this bus as it is: with its seqs, entry times and claims."""
        with self._errors(), self._write() as connection:
            insert_recorded(connection, entries)

    def claim(
        self, controller_id: str, settings: dict[str, str], time_ms: int, after_epoch: int | None = None
    ) -> Claim:
        with self._errors(), self._write() as connection:
            claimed = self.claimed_epoch()
            check_not_overtaken(claimed, after_epoch, self.path)
            epoch = epoch_after(claimed, self.path)
            started = controller_started(controller_id, epoch, settings, time_ms, self._mark("decided"))
            seq = append(connection, [row_of(started)])
            (entered_ms,) = connection.execute("SELECT entered_ms FROM events WHERE seq = ?", (seq,)).fetchone()
            connection.execute("INSERT INTO claims VALUES (?, ?, ?, ?)", (epoch, controller_id, seq, time_ms))
            connection.execute("INSERT OR IGNORE INTO marks VALUES ('bus_id', ?)", (draw_bus_id(),))
            return Claim(epoch, seq, entered_ms)

    def tell_undecided(self, controller_epoch: int, tick: bytes) -> int:
        with self._errors(), self._write() as connection:
            self._check_held(controller_epoch)
            seq = append(connection, [row_of(tick)])
            self._raise_mark(connection, "told", seq)
            return seq

    def await_writable(self) -> None:
        # A transaction begins once no other process has the lock.
        with self._errors(), self._write():
            pass

    def resign(self, controller_epoch: int) -> None:
        with self._errors(), self._write() as connection:
            self._raise_mark(connection, "resigned", controller_epoch)

    def resigned_epoch(self) -> int:
        with self._errors():
            return self._mark("resigned")

    def newest_tick(self) -> int:
        with self._errors(), self._snapshot() as connection:
            return newest_of(connection, "tick", self.last_seq() - TICK_SOUGHT_MAX)

    def blocked(self) -> None:
        """Return None, because a file shows no events before they are committed."""

    def blocker(self) -> str:
        return ""

    def claimed_epoch(self) -> int:
        with self._errors(), self._snapshot() as connection:
            return int(connection.execute("SELECT coalesce(max(controller_epoch), 0) FROM claims").fetchone()[0])

    def bus_id(self) -> int:
        with self._errors():
            return self._mark("bus_id")

    def identities(self, name: str) -> tuple[str, ...]:
        # The inode tells copies of the file apart, because they have the same bus_id.
        found = self.path.stat()
        return (f"{found.st_dev}:{found.st_ino}",)

    def commit(self, controller_epoch: int, through: int, decisions: Sequence[Decided], pages: Sequence[Page]) -> None:
        with self._errors(), self._write() as connection:
            self._check_held(controller_epoch)
            decided_seq = self._mark("decided")
            runs = runs_in(decisions)
            former = DecidedRuns([run for run in runs if run.seq <= decided_seq])
            check_same_decisions(connection, former, self.path)
            if through == decided_seq:
                # Also the state, because a repeated batch may lack decisions that it made the first time.
                check_same_pages(connection, pages, self.path)
            if through <= decided_seq:
                return
            fresh = [run for run in runs if run.seq > decided_seq]
            decision_table.write(connection, list(rows_of(fresh)))
            partition_index.add(connection, fresh, through)
            write_pages(connection, pages)
            self._raise_mark(connection, "decided", through)

    def keep_snapshot(self, controller_epoch: int) -> bool:
        with self._errors(), self._write() as connection:
            self._check_held(controller_epoch)
            decided_seq = self._mark("decided")
            return decided_seq > 0 and former_pages.take(connection, Snapshot(decided_seq, now_ms()))

    def _check_held(self, controller_epoch: int) -> None:
        claimed = self.claimed_epoch()
        if claimed != controller_epoch:
            raise FencedError(f"controller epoch {claimed} was claimed; this job holds {controller_epoch}")

    def replace_image(self, controller_epoch: int, image: Image) -> None:
        with self._errors(), self._write() as connection:
            self._check_held(controller_epoch)
            if image.seq != (decided_seq := self._mark("decided")):
                raise DivergedError(f"bus {self.path}: the state is at seq {decided_seq}, not {image.seq}")
            replace_pages(connection, image.pages)
            self._set_mark(connection, "layouts", self._mark("layouts") + 1)

    def committed_seq(self) -> int:
        return self.decided_seq()

    def layouts(self) -> int:
        with self._errors():
            return self._mark("layouts")

    def image(self) -> Image:
        with self._errors(), self._snapshot() as connection:
            return Image(self._mark("decided"), read_pages(connection, self.path))


def _has_due(connection: sqlite3.Connection, after: int) -> bool:
    """Return whether an event came after ``after`` that is not deferrable."""
    found = connection.execute("SELECT EXISTS (SELECT 1 FROM events WHERE seq > ? AND NOT patient)", (after,))
    return bool(found.fetchone()[0])


def _last_due(connection: sqlite3.Connection, after: int, through: int) -> int | None:
    """Return the seq of the last event after ``after``, through ``through``, that is not deferrable."""
    found = connection.execute(
        "SELECT seq FROM events WHERE seq > ? AND seq <= ? AND NOT patient ORDER BY seq DESC LIMIT 1", (after, through)
    ).fetchone()
    return int(found[0]) if found else None


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner may use, if there is none. Raises ``BusError``."""
    try:
        private_dir(path.parent)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, _FILE_MODE)
    except FileExistsError:
        return
    except OSError as error:
        # The file may be there already, behind an obstacle.
        said = obstacle_above(path) or f"cannot be made: {error.strerror}"
        raise BusError(f"bus {path}: {said}") from error
    os.fchmod(descriptor, _FILE_MODE)
    os.close(descriptor)
