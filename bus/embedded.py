"""The embedded bus: one SQLite file in WAL mode that several processes share."""

from collections.abc import Sequence
from pathlib import Path

from bus import checksums, former_pages, partition_index
from bus.added_columns import CRC
from bus.bus_file import Access
from bus.claim import check_not_overtaken, controller_started, draw_bus_id, epoch_after
from bus.clock import now_ms
from bus.deferrable import row_of
from bus.embedded_history import EmbeddedHistory
from bus.embedded_schema import SCHEMA, SCHEMA_VERSION, TABLES
from bus.engine_only import refuse_engine_kinds
from bus.event_table import append, entries_between, has_kind, insert_recorded
from bus.file_identity import check_same
from bus.interface import (
    MAX_EVENT_BYTES,
    TICK_SOUGHT_MAX,
    Bus,
    BusError,
    Claim,
    Decided,
    DivergedError,
    Entry,
    FencedError,
    Image,
    NoBusError,
    OpenOptions,
    Page,
    Snapshot,
    TrimmedError,
)
from bus.lock_wait import LOCK_TIMEOUT_S, while_locked
from bus.page_table import check_same_decisions, check_same_pages, read_pages, replace_pages, write_pages
from bus.weight import last_within
from conf.settings import SQLITE


class EmbeddedBus(EmbeddedHistory):
    """The ``Bus`` in one SQLite file. The seq is the rowid, so the order of publishing is the total order.

    Several threads may use one instance. With ``Access.READ`` it changes nothing, and only with ``Access.MAKE`` does it
    make a file.
    """

    kind = "embedded"
    seq_step = 1

    def __init__(
        self, path: Path | str, access: Access = Access.MAKE, *, lock_timeout_s: float = LOCK_TIMEOUT_S
    ) -> None:
        super().__init__(path, access, lock_timeout_s)
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
            raise BusError(f"{self.path} is no bus: it is another program's SQLite file")
        if self._access is not Access.READ:
            self._when_unlocked(self._connection(), "PRAGMA journal_mode = WAL")
        if not tables:
            with self._write() as connection:
                for statement in (*SCHEMA, *partition_index.SCHEMA):
                    connection.execute(statement)
                connection.execute("INSERT OR IGNORE INTO marks VALUES ('schema_version', ?)", (SCHEMA_VERSION,))
        version = self._mark("schema_version")
        if version == SCHEMA_VERSION and self._access is not Access.READ:
            self._grow()
        if version != SCHEMA_VERSION:
            raise BusError(f"bus {self.path} has schema version {version}; this isrflow reads {SCHEMA_VERSION}")

    def _grow(self) -> None:
        """Add the columns and tables that an older file lacks."""
        connection = self._connection()
        if (
            self._columns.missing(connection)
            or not partition_index.is_there(connection)
            or not former_pages.has_tables(connection)
        ):
            with self._write() as connection:
                self._columns.add(connection)
                for statement in (*partition_index.SCHEMA, *former_pages.TABLES):
                    connection.execute(statement)

    def publish(self, events: Sequence[bytes]) -> int:
        refuse_engine_kinds(events)
        return self.publish_own(events)

    def publish_own(self, events: Sequence[bytes]) -> int:
        for raw in events:
            if len(raw) > MAX_EVENT_BYTES:
                raise BusError(f"an event of {len(raw)} bytes is over the limit of {MAX_EVENT_BYTES}")
        rows = [row_of(raw) for raw in events]
        with self._errors():
            if not rows:
                return self.last_seq()
            with self._write() as connection:
                return append(connection, rows)

    def count_sequenced(self, events: Sequence[bytes]) -> int:
        return len(events)

    def offsets_position(self) -> int:
        return self.last_seq()

    def offsets_came(self, after: int) -> bool:
        with self._errors(), self._snapshot() as connection:
            return has_kind(connection, "log_end_offset", after)

    def read(self, after: int, through: int) -> list[Entry]:
        with self._errors(), self._snapshot() as connection:
            trimmed = self._mark("trimmed")
            if after < trimmed and through > after:
                raise TrimmedError(f"bus {self.path}: events up to {trimmed} were removed; {after + 1} was asked for")
            return entries_between(connection, self._columns, after, through)

    def batch_end(self, after: int, count: int, bytes_max: int = 2**62, *, defer: bool) -> int:
        """Return the seq at which a batch that starts after ``after`` ends: up to ``count`` events on.

        The batch ends earlier if it would weigh more than ``bytes_max`` (``weight``), but has at least one event. With
        ``defer``, return ``after`` while there are only events that wait for the next tick: heartbeats and offsets.
        """
        with self._errors(), self._snapshot() as connection:
            if (
                defer
                and not connection.execute(
                    "SELECT EXISTS (SELECT 1 FROM events WHERE seq > ? AND NOT patient)", (after,)
                ).fetchone()[0]
            ):
                return after
            return last_within(connection, after, count, bytes_max)

    def load(self, entries: Sequence[Entry]) -> None:
        """Put a recorded log on this bus with its own seqs, entry times, and what it says about claims."""
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

    def resign(self, controller_epoch: int) -> None:
        with self._errors(), self._write() as connection:
            self._raise_mark(connection, "resigned", controller_epoch)

    def resigned_epoch(self) -> int:
        with self._errors():
            return self._mark("resigned")

    def ticked(self, after: int) -> bool:
        with self._errors(), self._snapshot() as connection:
            return has_kind(connection, "tick", max(after, self.last_seq() - TICK_SOUGHT_MAX))

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
            check_same_decisions(connection, [one for one in decisions if one.seq <= decided_seq], self.path)
            if through == decided_seq:
                # Also the state, because a repeated batch may lack decisions that it made the first time.
                check_same_pages(connection, pages, self.path)
            if through <= decided_seq:
                return
            fresh = [decided for decided in decisions if decided.seq > decided_seq]
            connection.executemany("INSERT INTO decisions VALUES (?, ?, ?, ?)", checksums.with_crc(fresh))
            partition_index.add(connection, fresh, decided_seq, through)
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

    def layouts(self) -> int:
        with self._errors():
            return self._mark("layouts")

    def decided_seq(self) -> int:
        with self._errors():
            return self._mark("decided")

    def changed(self) -> bool:
        # data_version changes when another connection commits. Other threads have other connections.
        with self._errors():
            self._reopen_if_written()
            connection = self._connection()
            check_same(self.path, self._identity)
            version = while_locked(
                self.path,
                self._lock_timeout_s,
                lambda: int(connection.execute("PRAGMA data_version").fetchone()[0]),
            )
        seen = getattr(self._local, "data_version", None)
        self._local.data_version = version
        return bool(version != seen)

    def image(self) -> Image:
        with self._errors(), self._snapshot() as connection:
            crcs = self._columns.of(connection, "pages", CRC)
            return Image(self._mark("decided"), read_pages(connection, crcs, self.path))


def open_url(url: str, options: OpenOptions) -> Bus:
    """Open ``sqlite:PATH`` or a bare path (``open_bus.Kind``)."""
    access = Access.READ if options.read_only else Access.MAKE if options.create else Access.WRITE
    return EmbeddedBus(url.removeprefix(SQLITE), access, lock_timeout_s=options.lock_timeout_s)


def files_name(url: str) -> str:
    """Return the path of the bus itself (``open_bus.Kind``)."""
    return url.removeprefix(SQLITE)
