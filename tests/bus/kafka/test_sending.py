"""Records are handed to Kafka's client and waited for with a bound. Nothing listens here, so every wait must end."""

import pytest

from bus.interface import BusError
from bus.kafka import sending
from bus.kafka.connection import Connection
from isrflow.kafka.address import parse

# Port 1 of loopback refuses.
ADDRESS = parse("kafka://127.0.0.1:1")
TIMEOUT_S = 0.2


def test_a_queue_that_stays_full_ends_the_wait() -> None:
    producer = Connection(ADDRESS).producer(**{"queue.buffering.max.messages": 1})
    sending.send(producer, ADDRESS, "t", None, b"first", timeout_s=TIMEOUT_S)
    with pytest.raises(BusError, match="the client's queue stays full, so t cannot be written"):
        sending.send(producer, ADDRESS, "t", None, b"second", timeout_s=TIMEOUT_S)
    producer.purge()


def test_a_flush_ends_when_nothing_is_written() -> None:
    producer = Connection(ADDRESS).producer()
    sending.send(producer, ADDRESS, "t", b"key", b"value", headers={"previous": b"0"}, timeout_s=TIMEOUT_S)
    with pytest.raises(BusError, match=r"bus kafka://127\.0\.0\.1:1/isrflow: no answer in"):
        sending.flush(producer, ADDRESS, TIMEOUT_S)
    producer.purge()
    sending.flush(producer, ADDRESS, TIMEOUT_S)
