"""Write as the one job that decides: the claim, and each batch's decisions with the state, in one transaction.

All jobs of a bus share one transactional id, so Kafka lets only the one write that came last: when a
job claims, what an older one has open is aborted, and what that still sends is refused.
"""

import random
import struct
import threading
import time
from collections.abc import Callable, Sequence

import msgspec
from confluent_kafka import KafkaException, Producer

from bus import pieces
from bus.claim import controller_started
from bus.interface import BusError, Claim, Decided, FencedError, Page, draw_bus_id, epoch_after
from bus.kafka.connection import REQUEST_TIMEOUT_S, TRANSACTION_TIMEOUT_MS, Connection, is_fenced
from bus.kafka.delivery_reports import DeliveryReports
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark, decode_mark
from bus.kafka.seqs import seq_of

# What waits in the client for its turn; whoever writes more waits too.
QUEUE_KBYTES_MAX = 128 * 1024
CLAIM_ATTEMPTS = 20
CLAIM_PAUSE_S = (0.05, 0.5)
SUCCESSOR_TIMEOUT_S = 5.0
DECISION_KEY = struct.Struct(">qq")
_PAGE_KEY = struct.Struct(">ii")
_PIECE_KEY = struct.Struct(">iq")
_PAGE_MAX = 2**31 - 1
MARK_KEY = b"mark"
# A decision says which one stands before it, for whoever finds that one gone.
PREVIOUS = "previous"
Headers = dict[str, str | bytes | None]


class Controller:
    """Claim, commit, and know the newest mark; threads take turns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._topic = connection.address.controller
        self._marks: LogReader | None = None
        self._mark = Mark()
        self._producer: Producer | None = None
        self._held_epoch = -1
        self._lock = threading.RLock()

    def mark(self) -> Mark:
        """Return the newest mark that is committed; this process's own at once, others' when they can be read."""
        with self._lock:
            end = self._connection.end_offset(self._topic)
            if self._marks is None:
                self._marks = LogReader(self._connection, self._topic)
                newest = self._marks.last(self._connection.start_offset(self._topic), end)
            else:
                newest = next(reversed(self._marks.take(end, end)), None)
            if newest is not None:
                self._mark = max(self._mark, decode_mark(newest.value), key=_age)
            return self._mark

    def claim(self, controller_id: str, settings: dict[str, str], time_ms: int) -> Claim:
        """Take the next controller epoch; whoever is fenced on the way begins anew, ``CLAIM_ATTEMPTS`` times."""
        for _ in range(CLAIM_ATTEMPTS):
            try:
                with self._lock, self._connection.errors():
                    return self._claim(controller_id, settings, time_ms)
            except FencedError:
                time.sleep(random.uniform(*CLAIM_PAUSE_S))
        raise BusError(
            f"bus {self._connection.address}: other jobs claimed each of {CLAIM_ATTEMPTS} times: how many are started?"
        )

    def _claim(self, controller_id: str, settings: dict[str, str], time_ms: int) -> Claim:
        producer = self._connection.producer(
            **{
                "transactional.id": f"{self._connection.address.prefix}.controller",
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                # A record's turn may come late in a large batch: whether anything moves is seen by ``_flush``.
                "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "queue.buffering.max.kbytes": QUEUE_KBYTES_MAX,
                "linger.ms": 0,
            }
        )
        producer.init_transactions(REQUEST_TIMEOUT_S)
        # Only now: what the job before had open is committed or aborted, and it can begin nothing more.
        before = self.mark()
        mark = msgspec.structs.replace(
            before,
            controller_epoch=epoch_after(before.controller_epoch, self._connection.address),
            controller_id=controller_id,
            bus_id=before.bus_id or draw_bus_id(),
        )
        started = controller_started(controller_id, mark.controller_epoch, settings, time_ms, before.through)
        producer.begin_transaction()
        reports = DeliveryReports()
        events = self._connection.address.events
        producer.produce(events, value=started, partition=0, on_delivery=reports.told)
        # The mark says where the event stands, so that must be known first.
        self._flush(producer)
        mark = mark.with_claim(mark.controller_epoch, reports.last_offset(), reports.last_time_ms())
        producer.produce(self._topic, key=MARK_KEY, value=msgspec.json.encode(mark), partition=0)
        self._end(producer)
        self._producer, self._held_epoch, self._mark = producer, mark.controller_epoch, mark
        return Claim(mark.controller_epoch, seq_of(reports.last_offset()), reports.last_time_ms())

    def commit(
        self,
        controller_epoch: int,
        through: int,
        decisions: Sequence[Decided],
        pages: Sequence[Page],
        check_again: Callable[[Mark], None],
    ) -> None:
        """Write what comes after the newest mark, all or none; ``check_again`` gets that, and may refuse a batch."""
        with self._lock:
            before = self.mark()
            if before.controller_epoch != controller_epoch:
                raise self._superseded(controller_epoch, before)
            check_again(before)
            if through > before.through:
                if self._producer is None or self._held_epoch != controller_epoch:
                    raise BusError(
                        f"bus {self._connection.address}: controller epoch {controller_epoch} is another process's"
                    )
                fresh = [decided for decided in decisions if decided.seq > before.through]
                self._write(self._producer, before, through, fresh, pages)

    def _write(
        self, producer: Producer, before: Mark, through: int, decisions: list[Decided], pages: Sequence[Page]
    ) -> None:
        try:
            with self._connection.errors():
                producer.begin_transaction()
                mark = self._write_decisions(producer, before, decisions)
                for page in pieces.cut(pages):
                    self._produce(producer, self._connection.address.state, _key_of(page), page.body)
                mark = msgspec.structs.replace(mark, through=through, before=before.through)
                for topic in (self._connection.address.state, self._topic):
                    self._produce(producer, topic, MARK_KEY, msgspec.json.encode(mark))
                self._end(producer)
                self._mark = mark
        except FencedError as error:
            raise self._fenced(before.controller_epoch, error) from error

    def _write_decisions(self, producer: Producer, before: Mark, decisions: list[Decided]) -> Mark:
        if not decisions:
            return before
        reports = DeliveryReports()
        last = before.last_decision
        for decided in decisions:
            headers: Headers = {PREVIOUS: DECISION_KEY.pack(*last)}
            last = (decided.seq, decided.idx)
            topic = self._connection.address.decisions
            self._produce(producer, topic, DECISION_KEY.pack(*last), decided.body, headers, reports)
        # The mark says where they end, so that must be known first.
        self._flush(producer)
        return msgspec.structs.replace(before, last_decision=last, decisions_end=reports.last_offset() + 1)

    def _produce(
        self,
        producer: Producer,
        topic: str,
        key: bytes,
        value: bytes,
        headers: Headers | None = None,
        reports: DeliveryReports | None = None,
    ) -> None:
        deadline = time.monotonic() + REQUEST_TIMEOUT_S
        while True:
            try:
                producer.produce(
                    topic,
                    key=key,
                    value=value,
                    partition=0,
                    headers=headers,
                    on_delivery=reports.told if reports else None,
                )
                return
            except BufferError as error:
                if time.monotonic() > deadline:
                    raise BusError(f"bus {self._connection.address}: a batch's records are not taken off") from error
                producer.poll(0.05)

    def _flush(self, producer: Producer) -> None:
        """Wait until all is written, however long that takes, while any of it is."""
        left = len(producer)
        while producer.flush(REQUEST_TIMEOUT_S):
            if len(producer) >= left:
                raise BusError(f"bus {self._connection.address}: no answer in {REQUEST_TIMEOUT_S:.0f} s")
            left = len(producer)

    def _end(self, producer: Producer) -> None:
        """Commit; what cannot be committed is aborted."""
        self._flush(producer)
        deadline = time.monotonic() + TRANSACTION_TIMEOUT_MS / 1000
        while True:
            try:
                producer.commit_transaction(REQUEST_TIMEOUT_S)
                return
            except KafkaException as error:
                if error.args[0].retriable() and time.monotonic() < deadline:
                    continue
                if error.args[0].txn_requires_abort() and not is_fenced(error.args[0]):
                    producer.abort_transaction(REQUEST_TIMEOUT_S)
                raise

    def _fenced(self, controller_epoch: int, error: FencedError) -> BusError:
        """Say who fenced this job; a successor does so a moment before its claim can be read."""
        self._producer = None
        deadline = time.monotonic() + SUCCESSOR_TIMEOUT_S
        while (mark := self.mark()).controller_epoch == controller_epoch:
            if time.monotonic() > deadline:
                return error
            time.sleep(0.05)
        return self._superseded(controller_epoch, mark)

    def _superseded(self, controller_epoch: int, mark: Mark) -> FencedError:
        return FencedError(
            f"bus {self._connection.address}: controller epoch {mark.controller_epoch} was claimed; "
            f"this job holds {controller_epoch}"
        )

    def close(self) -> None:
        with self._lock:
            if self._marks is not None:
                self._marks.close()
                self._marks = None
            self._producer = None


def _key_of(page: Page) -> bytes:
    """Write a page's key; pieces of one have longer ones."""
    key = _PAGE_KEY if page.page <= _PAGE_MAX else _PIECE_KEY
    return key.pack(page.shard, page.page)


def page_of(key: bytes) -> tuple[int, int]:
    """Read a page's shard and number from its key."""
    shard, page = (_PAGE_KEY if len(key) == _PAGE_KEY.size else _PIECE_KEY).unpack(key)
    return shard, page


def _age(mark: Mark) -> tuple[int, int]:
    return mark.controller_epoch, mark.through
