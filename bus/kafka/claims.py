"""Tell which ``controller_started`` events on Kafka are claims: those that a mark names with their place."""

import time

from isrflow.bus.interface import BusError
from isrflow.bus.kafka.address import parse
from isrflow.bus.kafka.connection import RETRY_PAUSE_S, TRANSACTION_TIMEOUT_MS, Connection
from isrflow.bus.kafka.log_reader import LogReader
from isrflow.bus.kafka.mark import Mark, decode_mark


def claimed_offsets(connection: Connection) -> frozenset[int]:
    """Give the offsets of the newest claims among the control events; all that can be read by now are there.

    A claim's event and its mark are one transaction, whose topics become readable one after the other. The mark was
    written before the event can be read, so what is written by now is waited for, though it is not committed yet.
    """
    topic = connection.address.controller
    end = connection.written_offset(topic)
    deadline = time.monotonic() + TRANSACTION_TIMEOUT_MS / 1000
    while connection.end_offset(topic) < end:
        if time.monotonic() > deadline:
            raise BusError(f"bus {connection.address}: a transaction on {topic} does not end")
        time.sleep(RETRY_PAUSE_S)
    marks = LogReader(connection, topic)
    try:
        newest = marks.last(connection.start_offset(topic), end)
    finally:
        marks.close()
    mark = Mark() if newest is None else decode_mark(newest.value)
    return frozenset(offset for _, offset in mark.claims)


def claimed_offsets_of(url: str) -> frozenset[int]:
    """Do what ``claimed_offsets`` does, in a process that has no connection yet."""
    return claimed_offsets(Connection(parse(url)))
