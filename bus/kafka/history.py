"""The past of a bus on Kafka: read old events and states, and remove them."""

import contextlib
import threading
from collections.abc import Sequence

from confluent_kafka import TopicPartition

from bus.interface import Entry, Image, Snapshot, TrimmedError
from bus.kafka.claims import Claims, FormerClaims, newest_claims
from bus.kafka.connection import Connection
from bus.kafka.decision_reader import place_of
from bus.kafka.log_reader import LogReader, Record
from bus.kafka.mark import CLAIMS_KEPT
from bus.kafka.snapshots import Snapshots
from bus.past import ALL_EVENTS
from isrflow.engine_only import engine_kind_of
from isrflow.kafka.seqs import offset_after, seq_of
from state.found import Found, found_ms

_ALL = 2**62
_TIME_MS_MAX = 2**63 - 1


class KafkaHistory:
    """The part of a bus on Kafka that reads events back."""

    def __init__(self, connection: Connection) -> None:
        self.address = connection.address
        self._connection = connection
        self._snapshots = Snapshots(connection)
        self._events = LogReader(connection, self.address.events)
        # Held while reading, because each read moves the reader.
        self._events_lock = threading.Lock()
        self._claims: Claims | None = None
        self._former_claims = FormerClaims(connection)

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
        if not records:
            return []
        # A later claim finds no event undecided that is decided already.
        if self._claims is None or seq_of(records[-1].offset) > self._claims.through:
            self._claims = newest_claims(self._connection)
        claims = self._claims
        found = self._found_among(records, claims) if limit > 1 else claims.found
        return [_entry(record, claims, found) for record in records]

    def _found_among(self, records: Sequence[Record], claims: Claims) -> list[Found]:
        """Return what claims found among ``records``."""
        first, last_seq = records[0].offset, seq_of(records[-1].offset)
        found = list(claims.found)
        # Events that the oldest claim in the mark found undecided need no earlier claim, because the last one counts.
        if found and seq_of(first) <= found[0].after:
            end = offset_after(found[0].before - 1)
            with self._events_lock:
                found += self._former_claims.found(first, last_seq, end)
        return [one for one in found if one.before > seq_of(first) and one.after < last_seq]

    def recorded(self, after: int, through: int, limit: int, bytes_max: int) -> list[Entry]:
        topic = self.address.events
        first = max(offset_after(after), self._connection.start_offset(topic))
        end = min(offset_after(through), self._connection.end_offset(topic))
        return self._entries(first, end, limit, bytes_max) if first < end else []

    def kept_after(self) -> int:
        return seq_of(self._connection.start_offset(self.address.events) - 1)

    def seq_at(self, time_ms: int) -> int:
        # Kafka reads a negative time as a command, such as to return the end.
        later = self._connection.offset_since(self.address.events, min(max(0, time_ms + 1), _TIME_MS_MAX))
        if later is None:
            return self.last_seq()
        return seq_of(later - 1) if later > self._connection.start_offset(self.address.events) else 0

    def snapshots(self) -> list[Snapshot]:
        return self._snapshots.listed()

    def snapshot(self, seq: int) -> Image:
        image = self._snapshots.read(seq)
        if image is None:
            raise TrimmedError(f"bus {self.address}: there is no snapshot at seq {seq}, or retention has removed it")
        return image

    def thin(self, through: int, retain: int = ALL_EVENTS) -> int:
        """Remove snapshots. Events stay, because Kafka removes only from a topic's beginning."""
        return self._snapshots.drop(through)

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
        with contextlib.closing(LogReader(self._connection, topic)) as reader:
            reader.seek_first(lambda record: place_of(record)[0] > through, start, self._connection.end_offset(topic))
            end = reader.next_offset
        if end > start:
            self._connection.delete_records(TopicPartition(topic, 0, end))
        return max(0, end - start)


def _entry(record: Record, claims: Claims, found: Sequence[Found]) -> Entry:
    is_known = len(claims.offsets) < CLAIMS_KEPT or record.offset >= min(claims.offsets)
    if is_known or engine_kind_of(record.value) != "controller_started":
        is_claim: bool | None = record.offset in claims.offsets
    else:
        is_claim = None
    seq = seq_of(record.offset)
    return Entry(seq, record.value, record.time_ms, is_claim, found_ms(seq, found))
