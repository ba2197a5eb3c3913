"""Hand records to Kafka's client, and wait until they are written: both with a bound."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from bus.interface import BusError
from bus.kafka.connection import TRANSACTION_TIMEOUT_MS, Connection
from isrflow.kafka.address import Address

Headers = dict[str, str | bytes | None]
_ROOM_POLL_S = 0.05
# The most that may wait in the client to be sent. While it is full, writing waits.
QUEUE_KBYTES_MAX = 128 * 1024
# A producer's settings for records that come in large numbers. The last of them may wait long to be sent, and ``flush``
# checks that anything is sent at all.
BULK: dict[str, Any] = {
    "message.timeout.ms": TRANSACTION_TIMEOUT_MS,
    "queue.buffering.max.kbytes": QUEUE_KBYTES_MAX,
    "linger.ms": 0,
}


class DeliveryReports:
    """The delivery reports so far. Pass ``add`` to the producer."""

    def __init__(self) -> None:
        self._error: KafkaError | None = None
        self._offset = -1
        self._time_ms = 0

    def add(self, error: KafkaError | None, message: Message) -> None:
        """Add the report of one record."""
        self._error = self._error or error
        self._offset = max(self._offset, message.offset() or 0)
        self._time_ms = max(self._time_ms, message.timestamp()[1])

    def last_offset(self) -> int:
        """Return the greatest offset. Raises ``KafkaException`` if any record was not written."""
        if self._error is not None:
            raise KafkaException(self._error)
        return self._offset

    def last_time_ms(self) -> int:
        """Return the greatest timestamp of a record, as its topic stores it."""
        return self._time_ms


class Sender:
    """A producer of one bus, whose waits end. Every method raises ``KafkaException`` or ``BusError``."""

    def __init__(self, producer: Producer, connection: Connection) -> None:
        self.producer = producer
        self._address = connection.address
        self._timeout_s = connection.timeout_s

    def write(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers | None = None,
        reports: DeliveryReports | None = None,
        partition: int = 0,
    ) -> None:
        """Hand a record to the client as soon as there is room for it. A record without a value deletes ``key``."""
        on_delivery = reports.add if reports else None
        record: dict[str, Any] = {"key": key, "value": value, "partition": partition, "headers": headers}
        deadline_s = time.monotonic() + self._timeout_s
        while True:
            try:
                self.producer.produce(topic, **record, on_delivery=on_delivery)
                return
            except BufferError as error:
                if time.monotonic() > deadline_s:
                    full = f"the client's queue stays full, so {topic} cannot be written"
                    raise BusError(f"bus {self._address}: {full}") from error
                with fatal_errors(self.producer, self._address):
                    self.producer.poll(_ROOM_POLL_S)

    def flush(self) -> None:
        """Wait until all records are written. Raises ``BusError`` once none is written in time."""
        left = len(self.producer)
        with fatal_errors(self.producer, self._address):
            while self.producer.flush(self._timeout_s):
                if len(self.producer) >= left:
                    raise BusError(f"bus {self._address}: no answer in {self._timeout_s:.0f} s")
                left = len(self.producer)


@contextlib.contextmanager
def fatal_errors(producer: Producer, address: Address) -> Iterator[None]:
    """Raise the client's fatal error as the ``KafkaException`` that it is.

    The client prepares that exception, for example when another job has fenced this one, and then still calls back
    about deliveries. Python reports this as a ``SystemError``, which may have lost its cause.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KafkaException):
            raise error.__cause__ from error
        try:
            # After a fatal error every call of transactions raises it again.
            producer.begin_transaction()
        except KafkaException as fatal:
            if fatal.args[0].fatal():
                raise
        raise BusError(f"bus {address}: Kafka's client failed: {error}") from error
