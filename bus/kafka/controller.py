"""Write as the one job that decides: the claim, and each batch's decisions and state, in one transaction.

All jobs of a bus share one transactional id, so Kafka accepts only the newest one's writes. When a job claims, Kafka
aborts the older job's open transaction and refuses what that job still sends.
"""

import contextlib
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from confluent_kafka import Producer

from bus import pieces
from bus.claim import check_not_overtaken, controller_started, draw_bus_id, epoch_after
from bus.interface import (
    BusError,
    Claim,
    DivergedError,
    FencedError,
    Image,
    Page,
)
from bus.kafka.claims import newest_mark
from bus.kafka.commit_rows import rows_in_making
from bus.kafka.connection import RETRY_PAUSE_S, TRANSACTION_TIMEOUT_MS, Connection
from bus.kafka.delivery_reports import DeliveryReports
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark, decode_mark, newer
from bus.kafka.page_keys import MARK_KEY, PageKey, key_of
from bus.kafka.sending import BULK
from bus.kafka.transaction import Transaction, transaction
from isrflow.kafka.limits import REQUEST_TIMEOUT_S
from isrflow.kafka.seqs import seq_of
from isrflow.kafka.topic_end import LOST_END_TIMEOUT_S, lost_end
from state.numbered_run import NumberedRun

CLAIM_ATTEMPTS = 20
CLAIM_PAUSE_S = (0.05, 0.5)
SUCCESSOR_TIMEOUT_S = 5.0


class Controller:
    """The bus's claim, its commits and its newest mark. Threads take turns."""

    def __init__(self, connection: Connection, *, decision_blocks: bool = True) -> None:
        self._connection = connection
        self._topic = connection.address.controller
        self._decision_blocks = decision_blocks
        self._marks: LogReader | None = None
        self._mark = Mark()
        self._producer: Producer | None = None
        self._held = Claim(-1, 0, 0)
        # Held for a whole transaction.
        self._lock = threading.RLock()
        # Held for a moment, so that threads which only ask who has claimed the bus do not wait for a transaction.
        self._marks_lock = threading.Lock()

    @property
    def held(self) -> Claim:
        """This process's last claim, even if another job has claimed since; of epoch -1 without one."""
        return self._held

    def mark(self) -> Mark:
        """Return the newest committed mark: this process's own at once, another's as soon as it can be read."""
        with self._marks_lock:
            end = self._connection.end_offset(self._topic)
            if self._marks is None:
                with contextlib.ExitStack() as stack:
                    reader = LogReader(self._connection, self._topic)
                    stack.callback(reader.close)
                    newest = reader.last(self._connection.start_offset(self._topic), end)
                    stack.pop_all()
                self._marks = reader
            else:
                newest = next(reversed(self._marks.take(end, end)), None)
            if newest is not None:
                self._mark = newer(self._mark, decode_mark(newest.value))
            return self._mark

    def _note(self, mark: Mark) -> None:
        """Remember a mark that this process has committed."""
        with self._marks_lock:
            self._mark = newer(self._mark, mark)

    def check_not_behind(self, committed: Mark) -> None:
        """Raise ``BusError`` if the newest mark stays older than ``committed``, which came with a state.

        A claim would take an epoch a second time, and a reader would take old decisions for the newest ones.
        """
        deadline = time.monotonic() + LOST_END_TIMEOUT_S
        while newer(mark := self.mark(), committed) is not mark:
            if time.monotonic() > deadline:
                raise lost_end(
                    self._connection.address,
                    self._topic,
                    f"ends with controller epoch {mark.controller_epoch} and seq {mark.through}, "
                    f"but the state is of epoch {committed.controller_epoch} and seq {committed.through}",
                )
            # The topics of a transaction become readable one after the other.
            self._connection.await_committed(self._topic)
            time.sleep(RETRY_PAUSE_S)
            self._connection.look_up(self._topic)

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
                    state = self._connection.address.state
                    self.check_not_behind(newest_mark(self._connection, state, self._connection.end_offset(state)))
                    check_not_overtaken(self.mark().controller_epoch, after_epoch, self._connection.address)
                    return self._claim(producer, controller_id, settings, time_ms)
            except FencedError:
                time.sleep(random.uniform(*CLAIM_PAUSE_S))
        raise BusError(
            f"bus {self._connection.address}: other jobs claimed it during each of {CLAIM_ATTEMPTS} attempts: "
            "how many jobs are running?"
        )

    def _connected_producer(self) -> Producer:
        """Make a producer of transactions that has yet to open."""
        producer = self._connection.producer(
            **BULK,
            **{
                "transactional.id": f"{self._connection.address.prefix}.controller",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
            },
        )
        producer.list_topics(self._topic, timeout=REQUEST_TIMEOUT_S)
        return producer

    def _claim(self, producer: Producer, controller_id: str, settings: dict[str, str], time_ms: int) -> Claim:
        producer.init_transactions(REQUEST_TIMEOUT_S)
        # Now the previous job's transaction is committed or aborted, and it cannot begin another one.
        before = self.mark()
        mark = msgspec.structs.replace(
            before,
            controller_epoch=epoch_after(before.controller_epoch, self._connection.address),
            controller_id=controller_id,
            bus_id=before.bus_id or draw_bus_id(),
        )
        started = controller_started(controller_id, mark.controller_epoch, settings, time_ms, before.through)
        reports = DeliveryReports()
        with transaction(producer, self._connection.address) as begun:
            begun.write(self._connection.address.events, None, started, reports=reports)
            # The mark contains the event's offset, so that must be known first.
            begun.flush()
            mark = mark.with_claim(mark.controller_epoch, reports.last_offset(), reports.last_time_ms())
            begun.write(self._topic, MARK_KEY, msgspec.json.encode(mark))
            begun.end()
        claim = Claim(mark.controller_epoch, seq_of(reports.last_offset()), reports.last_time_ms())
        self._producer, self._held = producer, claim
        self._note(mark)
        return claim

    def tell_undecided(self, controller_epoch: int, tick: bytes) -> int:
        """Write a tick that says what is undecided, and wait until it can be read."""
        events = self._connection.address.events
        with self._lock:
            before = self._held_mark(controller_epoch)
            reports = DeliveryReports()
            with self._transaction(controller_epoch) as begun:
                begun.write(events, None, tick, reports=reports)
                # The mark contains the event's offset, so that must be known first.
                begun.flush()
                mark = before.with_found(reports.last_offset(), reports.last_time_ms())
                begun.write(self._topic, MARK_KEY, msgspec.json.encode(mark))
                begun.end()
            self._note(mark)
        # The next batch must know of it.
        self._connection.await_committed(events)
        return seq_of(reports.last_offset())

    def resign(self, controller_epoch: int) -> None:
        """Write a mark with the resignation. Do nothing if this process no longer holds the epoch."""
        with self._lock:
            before = self.mark()
            if self._producer is None or not self._held.controller_epoch == controller_epoch == before.controller_epoch:
                return
            mark = msgspec.structs.replace(before, resigned=controller_epoch)
            try:
                with self._connection.errors(), transaction(self._producer, self._connection.address) as begun:
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
        with self._lock:
            before = self._held_mark(controller_epoch)
            check_again(before)
            if through > before.through:
                fresh = [run for run in runs if run.seq > before.through]
                with (
                    rows_in_making(fresh, blocks=self._decision_blocks) as rows,
                    self._transaction(controller_epoch) as begun,
                ):
                    mark = begun.write_decisions(before, rows())
                    mark = msgspec.structs.replace(mark, through=through, before=before.through)
                    self._write_pages(begun, mark, pages)

    def replace_image(self, controller_epoch: int, image: Image, former: Iterable[PageKey]) -> None:
        """Replace the pages and pieces ``former`` by ``image``, all or none."""
        with self._lock:
            before = self._held_mark(controller_epoch)
            if image.seq != before.through:
                raise DivergedError(
                    f"bus {self._connection.address}: the state is at seq {before.through}, not {image.seq}"
                )
            kept = {(page.shard, page.page) for page in pieces.cut(image.pages)}
            with self._transaction(controller_epoch) as begun:
                for shard, page in sorted(set(former) - kept):
                    begun.write(self._connection.address.state, key_of(Page(shard, page, b"")), None)
                mark = msgspec.structs.replace(before, layouts=before.layouts + 1)
                self._write_pages(begun, mark, image.pages)

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

    @contextlib.contextmanager
    def _transaction(self, controller_epoch: int) -> Iterator[Transaction]:
        if self._producer is None or self._held.controller_epoch != controller_epoch:
            raise BusError(
                f"bus {self._connection.address}: controller epoch {controller_epoch} belongs to another process"
            )
        try:
            with self._connection.errors(), transaction(self._producer, self._connection.address) as begun:
                yield begun
        except FencedError as error:
            raise self._fenced(controller_epoch, error) from error

    def _write_pages(self, begun: Transaction, mark: Mark, pages: Sequence[Page]) -> None:
        """Write pages and then the mark, and commit."""
        for page in pieces.cut(pages):
            begun.write(self._connection.address.state, key_of(page), page.body)
        for topic in (self._connection.address.state, self._topic):
            begun.write(topic, MARK_KEY, msgspec.json.encode(mark))
        begun.end()
        self._note(mark)

    def _fenced(self, controller_epoch: int, error: FencedError) -> BusError:
        """Say which job fenced this one. Its claim becomes readable a moment after it fences.

        If nobody has claimed the bus, Kafka ended a transaction that took too long, and this job may start again.
        """
        self._producer = None
        deadline = time.monotonic() + SUCCESSOR_TIMEOUT_S
        while (mark := self.mark()).controller_epoch == controller_epoch:
            if time.monotonic() > deadline:
                return BusError(
                    f"bus {self._connection.address}: Kafka ended this job's transaction, which may take "
                    f"{TRANSACTION_TIMEOUT_MS} ms, or another job began to claim the bus and failed: {error}"
                )
            time.sleep(0.05)
        return self._superseded(controller_epoch, mark)

    def _superseded(self, controller_epoch: int, mark: Mark) -> FencedError:
        return FencedError(
            f"bus {self._connection.address}: controller epoch {mark.controller_epoch} was claimed; "
            f"this job holds {controller_epoch}"
        )

    def close(self) -> None:
        with self._lock, self._marks_lock:
            if self._marks is not None:
                self._marks.close()
                self._marks = None
            self._producer = None
