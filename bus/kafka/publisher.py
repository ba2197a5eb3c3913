"""Publish events on the events topic."""

import contextlib
import threading
from collections.abc import Iterator, Sequence

from confluent_kafka import KafkaError, KafkaException, Producer

from bus.interface import MAX_EVENT_BYTES, BusError
from bus.kafka.connection import Connection
from bus.kafka.sending import DeliveryReports, fatal_errors
from isrflow.kafka.limits import MESSAGE_BYTES_MAX
from state.chunks import chunks

# A record batch is appended whole or not at all, so events that belong together go in one. The other quarter is for the
# bytes that each record adds.
BATCH_BYTES_MAX = MESSAGE_BYTES_MAX * 3 // 4
BATCH_EVENTS_MAX = 10_000
_RECORD_OVERHEAD_BYTES = 100
# Long enough that nothing is sent before the flush, which keeps a batch whole.
_LINGER_MS = 10_000


class Publisher:
    """The producer of events, for all threads of a process. They take turns."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._producer: Producer | None = None
        self._lock = threading.Lock()

    def publish(self, events: Sequence[bytes]) -> int | None:
        """Append events. Return the offset of the last one, None if there is none.

        All events of a call are appended together or not at all, up to ``BATCH_BYTES_MAX`` bytes and
        ``BATCH_EVENTS_MAX`` events. Beyond that, earlier batches stay when a later one fails. If no answer comes in
        time the error says so, but the events may have been appended.
        """
        for raw in events:
            if len(raw) > MAX_EVENT_BYTES:
                raise BusError(f"an event of {len(raw)} bytes is over the limit of {MAX_EVENT_BYTES}")
        with self._lock, self._connection.errors(), self._no_dead_producer():
            last: int | None = None
            sized = ((raw, len(raw) + _RECORD_OVERHEAD_BYTES) for raw in events)
            for batch in chunks(sized, BATCH_BYTES_MAX, count_max=BATCH_EVENTS_MAX):
                last = self._append(batch)
        return last

    @contextlib.contextmanager
    def _no_dead_producer(self) -> Iterator[None]:
        """Drop a producer that Kafka's client has given up for good, because each of its calls would fail from now on.

        Examples: it was not authorized for a moment, or it lost its place in the topic by an unclean election.
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
