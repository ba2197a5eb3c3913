"""The logs of a bus on Kafka, for a client: kafka-python, which is all that ``isrflow[kafka]`` needs here."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaError

from isrflow.contract import DECISIONS_BYTES_MAX, MAX_EVENT_BYTES, Decided
from isrflow.engine_only import refuse_engine_kinds
from isrflow.errors import BusError, NoBusError, TrimmedError
from isrflow.kafka.address import parse
from isrflow.kafka.blocker import blocker_of
from isrflow.kafka.client_config import client_config
from isrflow.kafka.limits import (
    ANY_BYTES,
    FIRST_STEP_BACK,
    MESSAGE_BYTES_MAX,
    REQUEST_TIMEOUT_S,
    STEP_BACK_TIMES,
)
from isrflow.kafka.read_ahead import DecisionRecord, ReadAhead
from isrflow.kafka.records import DECISION_KEY, PREVIOUS
from isrflow.kafka.seqs import seq_of
from isrflow.kafka.topic_end import LOST_END_TIMEOUT_S, await_end

FETCH_WAIT_MS = 50


class KafkaLog:
    """The topics of an existing bus on Kafka. Threads take turns."""

    def __init__(self, url: str) -> None:
        try:
            self._address = parse(url)
        except ValueError as error:
            raise BusError(str(error)) from error
        common = {"bootstrap_servers": self._address.servers.split(","), **client_config().for_kafka_python()}
        self._decisions = TopicPartition(self._address.decisions, 0)
        # A signal handler may close the log in the middle of a call, in the same thread.
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._is_closed = False
        self._is_used = False
        # The place up to which decisions were returned; None if the consumer may stand anywhere.
        self._after: tuple[int, int] | None = None
        self._ahead = ReadAhead(f"bus {self._address}")
        # The greatest offset up to which the topic was ever there.
        self._greatest_end = 0
        self._producer: Any = None
        self._consumer: Any = None
        try:
            with self._use():
                self._consumer = KafkaConsumer(
                    **common,
                    bootstrap_timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
                    isolation_level="read_committed",
                    enable_auto_commit=False,
                    auto_offset_reset="none",
                    allow_auto_create_topics=False,
                    fetch_max_wait_ms=FETCH_WAIT_MS,
                    max_partition_fetch_bytes=MESSAGE_BYTES_MAX,
                )
                self._check_topics()
                self._consumer.assign([self._decisions])
                self._producer = KafkaProducer(
                    **common,
                    acks="all",
                    max_request_size=MESSAGE_BYTES_MAX,
                    max_block_ms=int(REQUEST_TIMEOUT_S * 1000),
                    request_timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
                    delivery_timeout_ms=int(REQUEST_TIMEOUT_S * 1000),
                    allow_auto_create_topics=False,
                )
        except BaseException:
            self.close()
            raise

    def _check_topics(self) -> None:
        """Raise ``NoBusError`` if a topic is missing."""
        there = self._consumer.topics()
        for topic in (self._address.events, self._address.decisions):
            if topic not in there:
                start = "start the engine with 'isrflow run'."
                raise NoBusError(f"bus {self._address}: there is no topic {topic}: {start}")

    def publish(self, events: Sequence[bytes]) -> int | None:
        """Append events, and return the seq of the last one; None if there is none."""
        refuse_engine_kinds(events)
        for raw in events:
            if len(raw) > MAX_EVENT_BYTES:
                raise BusError(f"an event of {len(raw)} bytes is over the limit of {MAX_EVENT_BYTES}")
        with self._use():
            sent = [self._producer.send(self._address.events, value=raw, partition=0) for raw in events]
            offsets = [one.get(timeout=REQUEST_TIMEOUT_S).offset for one in sent]
            return seq_of(offsets[-1]) if offsets else None

    def newest_decision(self) -> tuple[int, int]:
        """Return the place of the newest decision that can be read, or a place before all decisions."""
        with self._use():
            start, end = self._ends()
            self._after = None
            back = FIRST_STEP_BACK
            while True:
                # The marks of transactions take offsets too.
                offset = max(start, end - back)
                found = self._between(offset, end, back)
                if found or offset == start:
                    break
                back *= STEP_BACK_TIMES
            self._ahead.records = []
            self._after = found[-1].last if found else (0, -1)
            return self._after

    def thinned(self) -> tuple[int, int]:
        """Return a place before all decisions, because Kafka removes them only from the beginning of the topic."""
        return 0, -1

    def decisions(self, after: tuple[int, int], limit: int, *, passing_over: bool) -> list[Decided]:
        """Return up to ``limit`` decisions after a place, in order. Raises ``TrimmedError``.

        ``passing_over`` is for buses that thin decisions. Kafka does not.
        """
        with self._use():
            start, end = self._ends()
            # Retention may have overtaken the consumer.
            is_there = self._after == after and (
                self._ahead.has_any_after(after) or self._consumer.position(self._decisions) >= start
            )
            # After an error the consumer may stand behind decisions that were not returned.
            self._after = None
            if not is_there:
                self._ahead.records = []
                self._seek_after(after, start, end)
            while not self._ahead.has_any_after(after):
                # A place may be ahead of the topic, because not all decisions before it could be read then.
                self._ahead.records = self._take(end, limit, DECISIONS_BYTES_MAX)
                if not self._ahead.records:
                    break
            self._check_none_removed(after)
            found = self._ahead.take(after, limit, DECISIONS_BYTES_MAX)
            self._after = (found[-1].seq, found[-1].idx) if found else after
            return found

    def wait(self, timeout_s: float) -> None:
        """Wait for a moment, because the next ``decisions`` fetches by itself."""
        time.sleep(min(FETCH_WAIT_MS / 1000, timeout_s))

    def blocker(self) -> str:
        """Name the open transaction that keeps events from being decided; empty if none does, or if Kafka is silent."""
        with contextlib.suppress(KafkaError):
            return blocker_of(self._address)
        return ""

    def _ends(self) -> tuple[int, int]:
        """Return the first offset that retention has not removed, and the offset after the last committed decision.

        Raises ``BusError`` if the topic was longer before.
        """
        at, least = [self._decisions], self._greatest_end
        start = self._consumer.beginning_offsets(at)[self._decisions]
        self._greatest_end = await_end(
            self._address,
            self._decisions.topic,
            least,
            lambda topic: self._consumer.end_offsets(at)[self._decisions],
            lambda topic: self._consumer.topics(),
            timeout_s=LOST_END_TIMEOUT_S,
            was=f"was read up to offset {least}",
        )
        return start, self._greatest_end

    def _check_none_removed(self, after: tuple[int, int]) -> None:
        """Check that retention has removed nothing between a place and what was read after it."""
        if self._ahead.records and after[0] > 0 and after < (gone := self._ahead.records[0].previous):
            raise TrimmedError(
                f"bus {self._address}: decisions up to {gone} were removed: "
                f"read on from {gone[0] + 1}, or start from the current state"
            )

    def _seek_after(self, after: tuple[int, int], start: int, end: int) -> None:
        """Go to the record that has the first decision after a place, by bisection."""
        low, high = start, end
        while low < high:
            middle = (low + high) // 2
            found = self._between(middle, end, 1)
            if not found or found[0].last > after:
                high = middle
            else:
                low = found[0].offset + 1
        self._consumer.seek(self._decisions, low)

    def _between(self, offset: int, end: int, limit: int) -> list[DecisionRecord]:
        self._consumer.seek(self._decisions, offset)
        return self._take(end, limit)

    def _take(self, end: int, limit: int, bytes_max: int = ANY_BYTES) -> list[DecisionRecord]:
        """Read up to ``limit`` records from where the consumer stands, before the offset ``end``.

        The last poll may bring more than ``bytes_max`` bytes.
        """
        taken: list[DecisionRecord] = []
        left = bytes_max
        came_s = time.monotonic()
        while left > 0 and len(taken) < limit and (at := self._consumer.position(self._decisions)) < end:
            if time.monotonic() > came_s + REQUEST_TIMEOUT_S:
                raise BusError(f"bus {self._address}: no decision after offset {at} came in {REQUEST_TIMEOUT_S:.0f} s")
            polled = self._consumer.poll(timeout_ms=500, max_records=limit - len(taken))
            for record in polled.get(self._decisions, ()):
                headers = dict(record.headers)
                previous = DECISION_KEY.unpack(headers[PREVIOUS])
                seq, idx = DECISION_KEY.unpack(record.key)
                taken.append(DecisionRecord(Decided(seq, idx, record.value), previous, record.offset))
                self._greatest_end = max(self._greatest_end, record.offset + 1)
                left -= len(record.value)
                came_s = time.monotonic()
        return taken

    @property
    def _is_forked(self) -> bool:
        return os.getpid() != self._process

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """Keep the clients open, and to this thread alone, during the block. Raises ``BusError``."""
        if self._is_forked:
            # Both processes would read from one connection, and the thread that sends exists only in the parent.
            raise BusError(f"bus {self._address}: this process was forked after it connected: connect in the child")
        with self._lock:
            if self._is_closed:
                raise BusError(f"bus {self._address}: this program has closed it")
            self._is_used = True
            try:
                yield
            except KafkaError as error:
                raise BusError(f"bus {self._address}: {error}") from error
            finally:
                self._is_used = False
                if self._is_closed:
                    self._close_clients()

    def close(self) -> None:
        """Close the clients. What was published is acknowledged already. A call in progress ends first.

        In the child of a fork this leaves the parent's clients as they are.
        """
        self._is_closed = True
        if self._is_forked:
            return
        with self._lock:
            if not self._is_used:
                self._close_clients()

    def _close_clients(self) -> None:
        for client in (self._producer, self._consumer):
            if client is not None:
                client.close()


def open_log(url: str) -> KafkaLog:
    """Open the log of the bus at ``url`` (``bus_url.BusKind``)."""
    return KafkaLog(url)
