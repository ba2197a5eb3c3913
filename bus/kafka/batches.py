"""The events of a bus on Kafka, in batches of bounded weight.

A batch lies between two seqs, and Spark's checkpoint keeps both. So a repeated batch has the same events, even if its
bounds were changed since.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bus.interface import Entry, TrimmedError
from bus.kafka.claims import Claims, newest_claims
from bus.kafka.connection import AWAY_TIMEOUT_S, Connection
from bus.kafka.log_reader import FOLLOWING, LogReader, Record
from bus.weight import weight_of
from isrflow.kafka.address import parse
from isrflow.kafka.limits import REQUEST_TIMEOUT_S
from isrflow.kafka.seqs import offset_after, seq_of
from isrflow.sqlite.deferrable import row_of
from state.found import found_ms

_ALL = 2**62


class Bounds(NamedTuple):
    """The most that a batch may hold. A batch always takes one event, whatever its weight."""

    events: int
    weight: int


class _Batch(NamedTuple):
    after: int
    through: int
    records: list[Record]
    # Whether it left no event for the next batch.
    is_whole: bool


class Batches:
    """The reader of one bus's events. It keeps a planned batch until it is read, so each event is fetched once."""

    def __init__(self, url: str) -> None:
        self._connection = Connection(parse(url), AWAY_TIMEOUT_S)
        self._topic = self._connection.address.events
        self._reader: LogReader | None = None
        self._planned: _Batch | None = None
        # The offset of the marker that ends the claim's transaction; -1 before the claim.
        self._claim_marker = -1
        # Known since the first batch that is read, which a job does after its claim.
        self._claims: Claims | None = None

    def first(self, after: int) -> int:
        """Return the seq after which the first batch begins, if all events through ``after`` are decided."""
        return max(after, seq_of(self._connection.start_offset(self._topic) - 1))

    def claimed(self, seq: int) -> None:
        """Note the seq of the claim of the job that reads; 0 if it has not claimed."""
        self._claim_marker = offset_after(seq) if seq else -1

    def get_ready(self, after: int) -> None:
        """Begin to fetch the events of the batch after ``after``. Raises ``BusError``."""
        self._at(offset_after(after)).has_more()

    def plan(self, after: int, bounds: Bounds, *, defer: bool) -> int:
        """Return through which seq a batch that begins after ``after`` goes: ``after`` if there is no event.

        With ``defer``, heartbeats and reports of log ends wait until another event follows them, or until they are as
        many as a batch may hold. Raises ``BusError`` if Kafka has lost the events before ``after``.
        """
        begin = offset_after(after)
        end = self._end_of_events(begin)
        if end == self._claim_marker + 1:
            # The client would look for an event at this offset for as long as a fetch waits.
            end = self._claim_marker
        if end <= begin:
            return after
        reader = self._at(begin)
        records = list(_within(reader, end, bounds))
        due = _count_through_last_due(records) if defer else len(records)
        is_full = reader.next_offset < end
        if due < len(records) and (due or not is_full):
            reader.give_back(records[due:], records[due - 1].offset + 1 if due else begin)
            del records[due:]
        through = seq_of(reader.next_offset - 1)
        self._planned = _Batch(after, through, records, reader.next_offset == end)
        return through

    def read(self, after: int, through: int) -> Iterator[Entry]:
        """Yield the events of a planned batch in order. Raises ``TrimmedError`` if retention has removed any."""
        planned, self._planned = self._planned, None
        if planned is None or planned[:2] != (after, through):
            records = self._at(offset_after(after)).take(offset_after(through), _ALL)
            planned = _Batch(after, through, records, is_whole=False)
        # A new claim concerns only the batch that has it, and batches that this job can no longer commit. A tick that
        # tells what is undecided is there before the batch is planned, but may come after its end.
        if self._claims is None or not planned.is_whole or any(b"decided_seq" in one.value for one in planned.records):
            self._claims = newest_claims(self._connection)
        for one in planned.records:
            yield _entry(one, self._claims)

    def _end_of_events(self, decided_end: int) -> int:
        """Return the offset after the last event. Raises ``BusError`` if it stays before ``decided_end``.

        Events that enter there would have the seqs of decided ones, so they would never be decided.
        """
        return self._connection.await_end(
            self._topic,
            decided_end,
            self._connection.end_offset,
            timeout_s=REQUEST_TIMEOUT_S,
            was=f"events before offset {decided_end} are decided",
        )

    def _at(self, offset: int) -> LogReader:
        """Return the reader, at ``offset``."""
        if self._reader is None:
            self._reader = LogReader(self._connection, self._topic, **FOLLOWING)
        if not self._reader.stands_at(offset):
            start = self._connection.start_offset(self._topic)
            if start > offset:
                raise TrimmedError(
                    f"bus {self._connection.address}: events up to {seq_of(start - 1)} were removed; "
                    f"{seq_of(offset)} was asked for"
                )
            self._reader.seek(offset)
        return self._reader

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()


def _within(reader: LogReader, end: int, bounds: Bounds) -> Iterator[Record]:
    """Take events up to the offset ``end`` or the bounds, and at least one, if there is any."""
    count = weight = 0
    while (record := reader.peek(end)) is not None:
        count += 1
        weight += weight_of(record.value)
        if count > 1 and (count > bounds.events or weight > bounds.weight):
            return
        reader.skip()
        yield record


def _count_through_last_due(records: Sequence[Record]) -> int:
    """Return how many records there are through the last one that is not deferrable."""
    for count in range(len(records), 0, -1):
        _, is_deferrable, _ = row_of(records[count - 1].value)
        if not is_deferrable:
            return count
    return 0


def _entry(one: Record, claims: Claims) -> Entry:
    seq = seq_of(one.offset)
    return Entry(seq, one.value, one.time_ms, one.offset in claims.offsets, found_ms(seq, claims.found))
