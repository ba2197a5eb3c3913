"""Hand records to Kafka's client, and wait until they are written: both with a bound."""

import time

from confluent_kafka import Producer

from bus.interface import BusError
from bus.kafka.connection import REQUEST_TIMEOUT_S
from bus.kafka.delivery_reports import DeliveryReports
from isrflow.kafka.address import Address

Headers = dict[str, str | bytes | None]
_ROOM_POLL_S = 0.05


def send(
    producer: Producer,
    address: Address,
    topic: str,
    key: bytes | None,
    value: bytes | None,
    *,
    partition: int = 0,
    headers: Headers | None = None,
    reports: DeliveryReports | None = None,
) -> None:
    """Hand a record to the client as soon as there is room for it. Raises ``BusError`` if there is none in time."""
    on_delivery = reports.add if reports else None
    deadline_s = time.monotonic() + REQUEST_TIMEOUT_S
    while True:
        try:
            producer.produce(topic, key=key, value=value, partition=partition, headers=headers, on_delivery=on_delivery)
            return
        except BufferError as error:
            if time.monotonic() > deadline_s:
                raise BusError(f"bus {address}: the client's queue stays full, so {topic} cannot be written") from error
            producer.poll(_ROOM_POLL_S)


def flush(producer: Producer, address: Address) -> None:
    """Wait until all records are written. Raises ``BusError`` once none is written for ``REQUEST_TIMEOUT_S``."""
    left = len(producer)
    while producer.flush(REQUEST_TIMEOUT_S):
        if len(producer) >= left:
            raise BusError(f"bus {address}: no answer in {REQUEST_TIMEOUT_S:.0f} s")
        left = len(producer)
