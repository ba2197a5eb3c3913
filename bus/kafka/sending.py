"""Hand records to Kafka's client, and wait until they are written: both with a bound."""

import contextlib
import time
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaException, Producer

from bus.interface import BusError
from bus.kafka.connection import TRANSACTION_TIMEOUT_MS
from bus.kafka.delivery_reports import DeliveryReports
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


def send(
    producer: Producer,
    address: Address,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    *,
    timeout_s: float,
    partition: int = 0,
    headers: Headers | None = None,
    reports: DeliveryReports | None = None,
) -> None:
    """Hand a record to the client as soon as there is room for it. Raises ``BusError`` if there is none in time."""
    on_delivery = reports.add if reports else None
    deadline_s = time.monotonic() + timeout_s
    while True:
        try:
            producer.produce(topic, key=key, value=value, partition=partition, headers=headers, on_delivery=on_delivery)
            return
        except BufferError as error:
            if time.monotonic() > deadline_s:
                raise BusError(f"bus {address}: the client's queue stays full, so {topic} cannot be written") from error
            with fatal_errors(producer, address):
                producer.poll(_ROOM_POLL_S)


def flush(producer: Producer, address: Address, timeout_s: float) -> None:
    """Wait until all records are written. Raises ``BusError`` once none is written for ``timeout_s``."""
    left = len(producer)
    with fatal_errors(producer, address):
        while producer.flush(timeout_s):
            if len(producer) >= left:
                raise BusError(f"bus {address}: no answer in {timeout_s:.0f} s")
            left = len(producer)


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
