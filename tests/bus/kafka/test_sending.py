"""Records are handed to Kafka's client and waited for with a bound. Nothing listens here, so every wait must end."""

import pytest

from bus.interface import BusError
from bus.kafka.connection import Connection
from bus.kafka.sending import Sender
from isrflow.kafka.address import parse

# Port 1 of loopback refuses.
ADDRESS = parse("kafka://127.0.0.1:1")
TIMEOUT_S = 0.2
KEEPS = {"message.timeout.ms": 20_000}


def test_a_queue_that_stays_full_ends_the_wait() -> None:
    connection = Connection(ADDRESS, TIMEOUT_S)
    sender = Sender(connection.producer(**KEEPS, **{"queue.buffering.max.messages": 1}), connection)
    sender.write("t", None, b"first")
    with pytest.raises(BusError, match="the client's queue stays full, so t cannot be written"):
        sender.write("t", None, b"second")
    sender.producer.purge()


def test_a_flush_ends_when_nothing_is_written() -> None:
    connection = Connection(ADDRESS, TIMEOUT_S)
    sender = Sender(connection.producer(**KEEPS), connection)
    sender.write("t", b"key", b"value", headers={"previous": b"0"})
    with pytest.raises(BusError, match=r"bus kafka://127\.0\.0\.1:1/isrflow: no answer in"):
        sender.flush()
    sender.producer.purge()
    sender.flush()
