"""A publisher outlives a producer that Kafka's client has given up. The producers here are made up."""

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from bus.interface import BusError
from bus.kafka.connection import Connection
from bus.kafka.publisher import Publisher
from isrflow.kafka.address import parse

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'
# Errors of the client itself.
FATAL_ERROR, NOT_CONFIGURED, TRANSPORT = -150, -145, -195
FATAL = KafkaException(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED, "not allowed", fatal=True))
LATER = KafkaException(KafkaError(FATAL_ERROR, "Fatal error"))
PASSING = KafkaException(KafkaError(TRANSPORT, "away"))


class MadeUpProducer:
    """A producer whose calls fail as told; otherwise each record is delivered at once."""

    def __init__(self, produce: Exception | None = None, flush: Exception | None = None) -> None:
        self._produce, self._flush = produce, flush

    def produce(self, topic: str, **record: Any) -> None:
        if self._produce is not None:
            raise self._produce
        message: Any = SimpleNamespace(offset=lambda: 6, timestamp=lambda: (1, 1))
        record["on_delivery"](None, message)

    def flush(self, timeout_s: float) -> int:
        if self._flush is not None:
            raise self._flush
        return 0

    def begin_transaction(self) -> None:
        raise KafkaException(KafkaError(NOT_CONFIGURED))

    def purge(self) -> None:
        pass


def publisher_of(*producers: MadeUpProducer) -> Publisher:
    """Return a publisher that opens these producers, one after the other."""
    real = Connection(parse("kafka://127.0.0.1:1"))
    left = iter(producers)
    connection: Any = SimpleNamespace(
        address=real.address, timeout_s=1.0, errors=real.errors, producer=lambda **settings: next(left)
    )
    return Publisher(connection)


@pytest.mark.parametrize(
    "dead",
    [MadeUpProducer(produce=LATER), MadeUpProducer(flush=FATAL), MadeUpProducer(flush=SystemError("error return"))],
)
def test_a_producer_with_a_fatal_error_is_replaced(dead: MadeUpProducer) -> None:
    publisher = publisher_of(dead, MadeUpProducer())
    with pytest.raises(BusError):
        publisher.publish([EVENT])
    assert publisher.publish([EVENT]) == 6


def test_a_producer_with_a_passing_error_is_kept() -> None:
    publisher = publisher_of(MadeUpProducer(produce=PASSING))
    for _ in range(2):
        with pytest.raises(BusError, match="away"):
            publisher.publish([EVENT])
