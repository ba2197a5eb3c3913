"""Publish events on the topics: control events in one order, offsets by replica."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, Producer

from bus.interface import MAX_EVENT_BYTES, BusError
from bus.kafka.connection import Connection
from bus.kafka.delivery_reports import DeliveryReports
from bus.kafka.sending import fatal_errors
from isrflow.kafka.limits import MESSAGE_BYTES_MAX
from isrflow.kafka.records import Replica, replica_of
from state.chunks import chunks

# A record batch is appended whole or not at all, so events that belong together go in one. The other quarter is for the
# bytes that each record adds.
BATCH_BYTES_MAX = MESSAGE_BYTES_MAX * 3 // 4
BATCH_EVENTS_MAX = 10_000
_RECORD_OVERHEAD_BYTES = 100
# Long enough that nothing is sent before the flush, which keeps a batch whole.
_LINGER_MS = 10_000

T = TypeVar("T")


class Publisher:
    """The producer of events, for all threads of a process. They take turns."""

    def __init__(self, connection: Connection, offsets_partitions: int) -> None:
        self._connection = connection
        self._offsets_partitions = offsets_partitions
        self._producer: Producer | None = None
        self._lock = threading.Lock()

    def publish(self, events: Sequence[bytes]) -> int | None:
        """Append events. Return the offset of the last control event, None if there is none among them.

        All control events of a call are appended together or not at all, up to ``BATCH_BYTES_MAX`` bytes and
        ``BATCH_EVENTS_MAX`` events. Beyond that, earlier batches stay when a later one fails. If no answer comes in
        time the error says so, but the events may have been appended.
        """
        for raw in events:
            if len(raw) > MAX_EVENT_BYTES:
                raise BusError(f"an event of {len(raw)} bytes is over the limit of {MAX_EVENT_BYTES}")
        control: list[bytes] = []
        offsets: list[tuple[Replica, bytes]] = []
        for raw in events:
            replica = replica_of(raw)
            if replica is None:
                control.append(raw)
            else:
                offsets.append((replica, raw))
        with self._lock, self._connection.errors(), self._no_dead_producer():
            last: int | None = None
            for batch in _batches(control, len):
                last = self._append(batch)
            self._append_offsets(offsets)
        return last

    @contextlib.contextmanager
    def _no_dead_producer(self) -> Iterator[None]:
        """Drop a producer that Kafka's client has given up for good, because each of its calls would fail from now on.

        Such as one that was not authorized for a moment, or that lost its place in the topic by an unclean election.
        """
        try:
            yield
        except KafkaException as error:
            cause = error.args[0]
            # Some calls name the fatal error, and some only say that there was one.
            if cause.fatal() or cause.code() == KafkaError._FATAL:
                self._producer = None
            raise

    def _append(self, batch: list[bytes]) -> int:
        reports = DeliveryReports()
        producer = self._open()
        for raw in batch:
            producer.produce(self._connection.address.events, value=raw, partition=0, on_delivery=reports.add)
        self._flush(producer)
        return reports.last_offset()

    def _append_offsets(self, offsets: list[tuple[Replica, bytes]]) -> None:
        producer = self._open()
        for batch in _batches(offsets, lambda offset: len(offset[1])):
            reports = DeliveryReports()
            for replica, raw in batch:
                producer.produce(
                    self._connection.address.offsets,
                    key=replica.key,
                    value=raw,
                    partition=replica.partition_among(self._offsets_partitions),
                    on_delivery=reports.add,
                )
            self._flush(producer)
            reports.last_offset()

    def _open(self) -> Producer:
        if self._producer is None:
            self._producer = self._connection.producer(**{"linger.ms": _LINGER_MS})
        return self._producer

    def _flush(self, producer: Producer) -> None:
        try:
            with fatal_errors(producer, self._connection.address):
                left = producer.flush(self._connection.timeout_s + 1)
        except BusError:
            self._producer = None
            raise
        if left:
            # Events that were not sent must not appear after those that are published next.
            self._producer = None
            producer.purge()
            raise BusError(f"bus {self._connection.address}: no answer in {self._connection.timeout_s:.0f} s")

    def close(self) -> None:
        with self._lock:
            if self._producer is not None:
                self._producer.purge()
                self._producer = None


def _batches(events: list[T], size_of: Callable[[T], int]) -> Iterator[list[T]]:
    sized = ((event, size_of(event) + _RECORD_OVERHEAD_BYTES) for event in events)
    return chunks(sized, BATCH_BYTES_MAX, count_max=BATCH_EVENTS_MAX)
