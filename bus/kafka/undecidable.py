"""What another program's open transaction hides on a bus on Kafka: events from engines, and ticks from a standby.

Engines read committed records only, so they see nothing from the beginning of an open transaction on. Two offsets show
that: Kafka gives readers of committed records an earlier end (the last stable offset) than other readers. Finding out
whose transaction it is takes more requests (``isrflow/kafka/blocker.py``), so they are sent only for a message.
"""

import threading
from typing import Any

from kafka.errors import KafkaError

from bus.interface import TICK_SOUGHT_MAX, Blocked
from bus.kafka.connection import Connection
from bus.kafka.log_reader import LogReader
from isrflow.engine_only import engine_kind_of
from isrflow.kafka.blocker import blocker_of
from isrflow.kafka.seqs import seq_of

_UNCOMMITTED: dict[str, Any] = {"isolation.level": "read_uncommitted"}


class Undecidable:
    """The events of one bus that cannot be decided yet. Several threads may use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._uncommitted: LogReader | None = None
        self._newest_tick = 0
        # Held while ticks are read, because each read moves the reader.
        self._lock = threading.Lock()

    def blocked(self) -> Blocked | None:
        """Return the events that cannot be decided now (``Bus.blocked``)."""
        topic = self._connection.address.events
        # In this order, because a record that comes in between would look like one that cannot be read.
        end = self._connection.written_offset(topic)
        readable = self._connection.end_offset(topic)
        return Blocked(readable, end - readable) if readable < end else None

    def blocker(self) -> str:
        """Name the transaction that keeps them from being decided (``Bus.blocker``)."""
        found = self.blocked()
        if found is None:
            return ""
        address = self._connection.address
        try:
            return blocker_of(address)
        except KafkaError as error:
            where = f"{address.events}-0 at offset {found.offset}"
            return f"an open transaction in {where}, of which Kafka says no more: {error}"

    def newest_tick(self) -> int:
        """Return the newest tick (``Bus.newest_tick``)."""
        topic = self._connection.address.events
        with self._lock:
            end = self._connection.written_offset(topic)
            first = max(self._connection.start_offset(topic), end - TICK_SOUGHT_MAX)
            if self._uncommitted is None:
                self._uncommitted = LogReader(self._connection, topic, **_UNCOMMITTED)
            reader = self._uncommitted
            if not first <= reader.next_offset <= end or reader.is_lost:
                reader.seek(first)
            for record in reader.take(end, TICK_SOUGHT_MAX):
                if engine_kind_of(record.value) == "tick":
                    self._newest_tick = seq_of(record.offset)
            return self._newest_tick if self._newest_tick >= seq_of(first) else 0

    def close(self) -> None:
        with self._lock:
            if self._uncommitted is not None:
                self._uncommitted.close()
                self._uncommitted = None
