"""The past of a bus on Kafka: read old events and states, and remove them."""

import threading

from confluent_kafka import TopicPartition

from bus.engine_only import is_started
from bus.interface import Entry, Image, Snapshot, TrimmedError
from bus.kafka.claims import newest_claims
from bus.kafka.connection import Connection
from bus.kafka.log_reader import LogReader, Record
from bus.kafka.snapshots import Snapshots
from isrflow.kafka.records import DECISION_KEY
from isrflow.kafka.seqs import offset_after, seq_of

_ALL = 2**62


class KafkaHistory:
    """The part of a bus on Kafka that reads events back."""

    def __init__(self, connection: Connection, *, has_snapshots: bool) -> None:
        self.address = connection.address
        self._connection = connection
        self._has_snapshots = has_snapshots
        self._snapshots = Snapshots(connection)
        self._events = LogReader(connection, self.address.events)
        # Held while reading, because each read moves the reader.
        self._events_lock = threading.Lock()

    def last_seq(self) -> int:
        # The newest offset may hold no event, because the commit of a claim takes an offset too.
        return seq_of(self._connection.end_offset(self.address.events) - 1)

    def read(self, after: int, through: int) -> list[Entry]:
        first = offset_after(after)
        end = min(offset_after(through), self._connection.end_offset(self.address.events))
        if first >= end:
            return []
        start = self._connection.start_offset(self.address.events)
        if first < start:
            raise TrimmedError(
                f"bus {self.address}: events up to {seq_of(start - 1)} were removed; {seq_of(first)} was asked for"
            )
        return self._entries(first, end, _ALL, _ALL)

    def _entries(self, first: int, end: int, limit: int, bytes_max: int) -> list[Entry]:
        with self._events_lock:
            self._events.seek(first)
            records = self._events.take(end, limit, bytes_max)
        # Claims are rare, so the claims are read only if one of the events may be one.
        has_started = any(is_started(record.value) for record in records)
        claims = newest_claims(self._connection).offsets if has_started else frozenset()
        return [Entry(seq_of(r.offset), r.value, r.time_ms, r.offset in claims) for r in records]

    def recorded(self, after: int, through: int, limit: int, bytes_max: int) -> list[Entry]:
        end = min(offset_after(through), self._connection.end_offset(self.address.events))
        first = max(offset_after(after), self._connection.start_offset(self.address.events))
        return self._entries(first, end, limit, bytes_max) if first < end else []

    def kept_after(self) -> int:
        return seq_of(self._connection.start_offset(self.address.events) - 1)

    def seq_at(self, time_ms: int) -> int:
        later = self._connection.offset_since(self.address.events, time_ms + 1)
        if later is None:
            return self.last_seq()
        return seq_of(later - 1) if later > self._connection.start_offset(self.address.events) else 0

    def snapshots(self) -> list[Snapshot]:
        return self._snapshots.listed() if self._has_snapshots else []

    def snapshot(self, seq: int) -> Image:
        image = self._snapshots.read(seq) if self._has_snapshots else None
        if image is None:
            raise TrimmedError(f"bus {self.address}: there is no snapshot at seq {seq}, or retention has removed it")
        return image

    def trim(self, retain: int) -> int:
        return 0

    def thin(self, through: int) -> int:
        """Remove snapshots only. Kafka can remove records only from a topic's beginning, not events in between."""
        return self._snapshots.drop(through) if self._has_snapshots else 0

    def surplus_end(self, retain: int) -> int:
        return 0

    def _forget(self, through: int) -> int:
        topic = self.address.events
        start, end = self._connection.start_offset(topic), offset_after(through)
        if start >= end:
            return 0
        # Decisions first, because a reader of old events must not find events without their decisions.
        gone = self._forget_decisions(through)
        self._connection.delete_records(TopicPartition(topic, 0, end))
        return gone + end - start

    def _forget_decisions(self, through: int) -> int:
        topic = self.address.decisions
        start = self._connection.start_offset(topic)
        reader = LogReader(self._connection, topic)
        try:
            reader.seek_first(lambda record: place_of(record)[0] > through, start, self._connection.end_offset(topic))
            end = reader.next_offset
        finally:
            reader.close()
        if end > start:
            self._connection.delete_records(TopicPartition(topic, 0, end))
        return max(0, end - start)


def place_of(record: Record) -> tuple[int, int]:
    """Return the seq and index of the decision in a record."""
    seq, idx = DECISION_KEY.unpack(record.key)
    return seq, idx
