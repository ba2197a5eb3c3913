"""Write as the one job that decides: the claim, and each batch's decisions and state, in one transaction.

All jobs of a bus share one transactional id, so Kafka accepts only the newest one's writes. When a job claims, Kafka
aborts the older job's open transaction and refuses what that job still sends.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
from confluent_kafka import Producer

from bus import pieces
from bus.claim import check_not_overtaken, controller_started, draw_bus_id, epoch_after
from bus.interface import BusError, Claim, DivergedError, FencedError, Image, Page
from bus.kafka.claims import newest_mark
from bus.kafka.connection import RETRY_PAUSE_S, TRANSACTION_TIMEOUT_MS, Connection
from bus.kafka.mark import Mark
from bus.kafka.marks import Marks
from bus.kafka.sending import BULK, DeliveryReports
from bus.kafka.state_reader import MARK_KEY, PageKey, key_of
from bus.kafka.transaction import Transaction, rows_in, transaction
from isrflow.kafka.limits import REQUEST_TIMEOUT_S
from isrflow.kafka.seqs import seq_of
from state.numbered_run import NumberedRun

CLAIM_ATTEMPTS = 20
CLAIM_PAUSE_S = (0.05, 0.5)
SUCCESSOR_TIMEOUT_S = 5.0
_T = TypeVar("_T")


class _ReopenedError(BusError):
    """Kafka fenced this job, but no other job has claimed the bus. The producer is open again."""


class Controller(Marks):
    """The bus's claim and its commits. Threads take turns."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._address = connection.address
        self._producer: Producer | None = None
        # This process's last claim, even if another job has claimed since. Its epoch is -1 if there is none.
        self.held = Claim(-1, 0, 0)
        # Held for a whole transaction.
        self._lock = threading.RLock()

    def claim(
        self, controller_id: str, settings: dict[str, str], time_ms: int, after_epoch: int | None = None
    ) -> Claim:
        """Take the next controller epoch. If another job claims meanwhile, start over, ``CLAIM_ATTEMPTS`` times."""
        for _ in range(CLAIM_ATTEMPTS):
            try:
                with self._lock, self._connection.errors():
                    producer = self._connected_producer()
                    # Checked right before the producer opens, because that fences the job that holds the newest epoch.
                    # Several standbys see a silence at the same time.
                    state = self._address.state
                    self.check_not_behind(newest_mark(self._connection, state, self._connection.end_offset(state)))
                    check_not_overtaken(self.mark().controller_epoch, after_epoch, self._address)
                    return self._claim(producer, controller_id, settings, time_ms, after_epoch)
            except FencedError:
                time.sleep(random.uniform(*CLAIM_PAUSE_S))
        raise BusError(
            f"bus {self._address}: other jobs claimed it during each of {CLAIM_ATTEMPTS} attempts: "
            "how many jobs are running?"
        )

    def _connected_producer(self) -> Producer:
        """Make a producer of transactions that has yet to open."""
        producer = self._connection.producer(
            **BULK,
            **{
                "transactional.id": f"{self._address.prefix}.controller",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            },
        )
        producer.list_topics(self._topic, timeout=REQUEST_TIMEOUT_S)
        return producer

    def _claim(
        self, producer: Producer, controller_id: str, settings: dict[str, str], time_ms: int, after_epoch: int | None
    ) -> Claim:
        producer.init_transactions(REQUEST_TIMEOUT_S)
        # Now the previous job's transaction is committed or aborted, and it cannot begin another one.
        before = self.mark()
        # A standby that claimed after the first check is fenced now. It opens its producer again (``_fenced``).
        check_not_overtaken(before.controller_epoch, after_epoch, self._address)
        mark = msgspec.structs.replace(
            before,
            controller_epoch=epoch_after(before.controller_epoch, self._address),
            controller_id=controller_id,
            bus_id=before.bus_id or draw_bus_id(),
        )
        started = controller_started(controller_id, mark.controller_epoch, settings, time_ms, before.through)
        reports = DeliveryReports()
        with transaction(producer, self._connection) as begun:
            begun.write(self._address.events, None, started, reports=reports)
            # The mark contains the event's offset, so that must be known first.
            begun.flush()
            mark = mark.with_claim(mark.controller_epoch, reports.last_offset(), reports.last_time_ms())
            begun.write(self._topic, MARK_KEY, msgspec.json.encode(mark))
            begun.end()
        claim = Claim(mark.controller_epoch, seq_of(reports.last_offset()), reports.last_time_ms())
        self._producer, self.held = producer, claim
        self._note(mark)
        return claim

    def tell_undecided(self, controller_epoch: int, tick: bytes) -> int | None:
        """Write a tick that says what is undecided, and wait until it can be read. Return its seq.

        Do nothing while another program's transaction is open on the events topic: the next batch could not know of it.
        """
        events, reports = self._address.events, DeliveryReports()

        def write(before: Mark) -> bool:
            if self._connection.end_offset(events) < self._connection.written_offset(events):
                return False
            with self._transaction(controller_epoch) as begun:
                begun.write(events, None, tick, reports=reports)
                # The mark contains the event's offset, so that must be known first.
                begun.flush()
                mark = before.with_found(reports.last_offset(), reports.last_time_ms())
                begun.write(self._topic, MARK_KEY, msgspec.json.encode(mark))
                begun.end()
            self._note(mark)
            return True

        if not self._held_write(controller_epoch, write):
            return None
        # The next batch must know of it.
        self._connection.await_committed(events)
        return seq_of(reports.last_offset())

    def resign(self, controller_epoch: int) -> None:
        """Write a mark with the resignation. Do nothing if this process no longer holds the epoch."""
        with self._lock:
            before = self.mark()
            if self._producer is None or not self.held.controller_epoch == controller_epoch == before.controller_epoch:
                return
            mark = msgspec.structs.replace(before, resigned=controller_epoch)
            try:
                with self._connection.errors(), transaction(self._producer, self._connection) as begun:
                    begun.write(self._topic, MARK_KEY, msgspec.json.encode(mark))
                    begun.end()
            except FencedError:
                # Kafka fences this job a moment before the newer job's mark can be read.
                self._producer = None
                return
            self._note(mark)

    def commit(
        self,
        controller_epoch: int,
        through: int,
        runs: Sequence[NumberedRun],
        pages: Sequence[Page],
        check_again: Callable[[Mark], None],
    ) -> None:
        """Write what comes after the newest mark, all or none. ``check_again`` gets that mark first, and may raise."""

        def write(before: Mark) -> None:
            check_again(before)
            if through > before.through:
                fresh = [run for run in runs if run.seq > before.through]
                rows = rows_in(fresh)
                with self._transaction(controller_epoch) as begun:
                    mark = begun.write_decisions(before, rows)
                    mark = msgspec.structs.replace(mark, through=through, before=before.through)
                    self._write_pages(begun, mark, pages)

        self._held_write(controller_epoch, write)

    def replace_image(self, controller_epoch: int, image: Image, former: Iterable[PageKey]) -> None:
        """Replace the pages and pieces ``former`` by ``image``, all or none."""

        def write(before: Mark) -> None:
            if image.seq != before.through:
                raise DivergedError(f"bus {self._address}: the state is at seq {before.through}, not {image.seq}")
            kept = {(page.shard, page.page) for page in pieces.cut(image.pages)}
            with self._transaction(controller_epoch) as begun:
                for shard, page in sorted(set(former) - kept):
                    begun.write(self._address.state, key_of(Page(shard, page, b"")), None)
                mark = msgspec.structs.replace(before, layouts=before.layouts + 1)
                self._write_pages(begun, mark, image.pages)

        self._held_write(controller_epoch, write)

    def check_held(self, controller_epoch: int) -> None:
        """Raise ``FencedError`` if a later epoch was claimed."""
        with self._lock:
            self._held_mark(controller_epoch)

    def _held_mark(self, controller_epoch: int) -> Mark:
        """Return the newest mark. Raises ``FencedError`` if it is of another epoch."""
        mark = self.mark()
        if mark.controller_epoch != controller_epoch:
            raise self._superseded(controller_epoch, mark)
        return mark

    def _held_write(self, controller_epoch: int, write: Callable[[Mark], _T]) -> _T:
        """Call ``write`` with the newest mark; once more if another job fenced this one and then claimed nothing."""
        with self._lock:
            try:
                return write(self._held_mark(controller_epoch))
            except _ReopenedError:
                return write(self._held_mark(controller_epoch))

    @contextlib.contextmanager
    def _transaction(self, controller_epoch: int) -> Iterator[Transaction]:
        if self._producer is None or self.held.controller_epoch != controller_epoch:
            raise BusError(f"bus {self._address}: controller epoch {controller_epoch} belongs to another process")
        try:
            with self._connection.errors(), transaction(self._producer, self._connection) as begun:
                yield begun
        except FencedError as error:
            raise self._fenced(controller_epoch, error) from error

    def _write_pages(self, begun: Transaction, mark: Mark, pages: Sequence[Page]) -> None:
        """Write pages and then the mark, and commit."""
        for page in pieces.cut(pages):
            begun.write(self._address.state, key_of(page), page.body)
        for topic in (self._address.state, self._topic):
            begun.write(topic, MARK_KEY, msgspec.json.encode(mark))
        begun.end()
        self._note(mark)

    def _fenced(self, controller_epoch: int, error: FencedError) -> BusError:
        """Return an error that names the job that fenced this one, once that job's claim can be read.

        If no other job claims, Kafka has ended a transaction that took too long, or a standby was too late and
        gave up its claim. Then open the producer again: Kafka has ended all other claims by then, so the mark is final.
        """
        self._producer = None
        deadline = time.monotonic() + SUCCESSOR_TIMEOUT_S
        while (mark := self.mark()).controller_epoch == controller_epoch and time.monotonic() < deadline:
            time.sleep(RETRY_PAUSE_S)
        if mark.controller_epoch == controller_epoch:
            with self._connection.errors():
                producer = self._connected_producer()
                producer.init_transactions(REQUEST_TIMEOUT_S)
            mark = self.mark()
            if mark.controller_epoch == controller_epoch:
                self._producer = producer
                return _ReopenedError(f"bus {self._address}: Kafka ended this job's transaction: {error}")
        return self._superseded(controller_epoch, mark)

    def _superseded(self, controller_epoch: int, mark: Mark) -> FencedError:
        return FencedError(
            f"bus {self._address}: controller epoch {mark.controller_epoch} was claimed; "
            f"this job holds {controller_epoch}"
        )

    def close(self) -> None:
        with self._lock:
            super().close()
            self._producer = None
