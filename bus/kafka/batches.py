"""The events of both topics, merged into one order, in batches of bounded weight.

The problem: control events are in one topic, and reports of log ends (``log_end_offset`` events) in another one,
because there are many reports. Kafka has no order between topics. But the rules need one total order, and a repeated
batch must come out the same.

The insight: a report only takes effect at a tick. So a batch puts all its reports right before its last tick, and
reports without a control event wait for the next batch.

    events topic     4:beat   5:tick   6:beat             7:tick   8:beat
    offsets topic                               a  b  c
    merged           4:beat   5:tick   6:beat   a  b  c   7:tick   8:beat

Two positions enclose a batch, and Spark's checkpoint keeps both. So a repeated batch has the same events, even if its
bounds were changed since. And the same events always get the same order: control events by their offset, reports by
partition and offset.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from bus.interface import Entry, TrimmedError
from bus.kafka.claims import Claims, newest_claims
from bus.kafka.connection import AWAY_TIMEOUT_S, Connection
from bus.kafka.log_reader import LogReader, Record
from bus.weight import weight_of
from isrflow.kafka.address import parse
from isrflow.kafka.limits import REQUEST_TIMEOUT_S
from isrflow.kafka.seqs import offset_after, seq_of, slots_after
from state.event_text import decode
from state.events import Tick
from state.found import found_ms

_ALL = 2**62
# These readers follow both topics. They seek only at a start, so a fetch may wait long. They fetch little ahead,
# because that is in memory together with a batch.
_FOLLOWING = {
    "fetch.wait.max.ms": 500,
    "fetch.message.max.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 8 * 1024,
}


class Position(msgspec.Struct, frozen=True):
    """The place between two batches: the last event's seq, and the next offset in each partition."""

    seq: int
    events: int
    offsets: tuple[int, ...]


class Bounds(NamedTuple):
    """The most that a batch may hold. A batch always takes one control event, whatever its weight."""

    events: int
    weight: int

    def share(self, nth: int) -> "Bounds":
        """Return one of ``nth`` equal shares, with room for at least one event."""
        return Bounds(max(1, self.events // nth), self.weight // nth)


class Taken(NamedTuple):
    """An event as it came from a topic."""

    partition: int
    offset: int
    raw: bytes
    time_ms: int
    is_control: bool


class _Batch(NamedTuple):
    after: Position
    end: Position
    control: list[Taken]
    reports: list[Taken]
    # Whether it has all control events that there were.
    is_whole: bool


class Batches:
    """The reader of one bus's events. It keeps a planned batch until it is read, so each event is fetched once."""

    def __init__(self, url: str, offsets_partitions: int) -> None:
        self._connection = Connection(parse(url), AWAY_TIMEOUT_S)
        self._offsets_partitions = offsets_partitions
        self._readers: dict[tuple[str, int], LogReader] = {}
        self._planned: _Batch | None = None
        # The offset of the marker that ends the claim's transaction; -1 before the claim.
        self._claim_marker = -1
        # Known since the first batch that is read, which a job does after its claim.
        self._claims: Claims | None = None

    def first(self, after: int) -> Position:
        """Return the position after the control event ``after`` and before all reports.

        Reading all reports again does no harm: the offsets topic is compacted, and a replica's newest report changes
        nothing if the state already contains it.
        """
        start = self._connection.start_offset(self._connection.address.events)
        return Position(after, max(offset_after(after), start), (0,) * self._offsets_partitions)

    def claimed(self, seq: int) -> None:
        """Note the seq of the claim of the job that reads; 0 if it has not claimed."""
        self._claim_marker = offset_after(seq) if seq else -1

    def get_ready(self, after: Position) -> None:
        """Begin to fetch the control events of the batch after ``after``. Raises ``BusError``."""
        self._at(self._connection.address.events, 0, after.events).has_more()

    def plan(self, after: Position, bounds: Bounds) -> Position:
        """Return where a batch that begins at ``after`` ends: at ``after`` if there is no control event.

        Raises ``BusError`` if Kafka has lost the events before ``after``.

        While reports wait, control events get only half of the bounds, so that reports keep pace with the control
        events of the same time.
        """
        topic = self._connection.address.events
        end = self._end_of_events(after.events)
        if end == self._claim_marker + 1:
            # The client would look for an event at this offset for as long as a fetch waits.
            end = self._claim_marker
        if end <= after.events:
            return after
        waiting = self._waiting_reports(after)
        bounds = bounds.share(2 if waiting else 1)
        reader = self._at(topic, 0, after.events)
        control = list(_within(reader, 0, end, bounds, is_control=True))
        events = reader.next_offset
        each = bounds.share(self._offsets_partitions)
        room = slots_after(_seq_before_reports(control, after.seq)) // self._offsets_partitions
        each = each._replace(events=min(each.events, room))
        reports: list[Taken] = []
        offsets = list(self._offsets(after))
        for partition, count in waiting.items() if each.events else ():
            last = offsets[partition] + -(-count * (events - after.events) // (end - after.events))
            reader = self._at(self._connection.address.offsets, partition, offsets[partition])
            reports += _within(reader, partition, last, each, is_control=False)
            offsets[partition] = reader.next_offset
        seq = max((seq for seq, _ in in_order(control, reports, after.seq)), default=after.seq)
        self._planned = _Batch(after, Position(seq, events, tuple(offsets)), control, reports, events == end)
        return self._planned.end

    def read(self, after: Position, end: Position) -> Iterator[Entry]:
        """Give the events of a planned batch in order. Raises ``TrimmedError`` if retention has removed any."""
        planned, self._planned = self._planned, None
        if planned is None or (planned.after, planned.end) != (after, end):
            planned = self._read_again(after, end)
        # A new claim concerns only the batch that has it, and those that this job can no longer commit. A tick that
        # tells what is undecided is there before the batch is planned, but may come after its end.
        if self._claims is None or not planned.is_whole or any(b"decided_seq" in one.raw for one in planned.control):
            self._claims = newest_claims(self._connection)
        for seq, one in in_order(planned.control, planned.reports, after.seq):
            yield _entry(seq, one, self._claims)

    def _end_of_events(self, decided_end: int) -> int:
        """Return the offset after the last event. Raises ``BusError`` if it stays before ``decided_end``.

        What enters there would have the seqs of events that are decided, so nobody would ever decide it.
        """
        return self._connection.await_end(
            self._connection.address.events,
            decided_end,
            self._connection.end_offset,
            timeout_s=REQUEST_TIMEOUT_S,
            was=f"events before offset {decided_end} are decided",
        )

    def _waiting_reports(self, after: Position) -> dict[int, int]:
        """Return how many offsets come after ``after`` in each partition of reports that has any."""
        topic = self._connection.address.offsets
        ends = self._connection.end_offsets(topic, range(self._offsets_partitions))
        counts = {nth: end - begin for nth, (begin, end) in enumerate(zip(self._offsets(after), ends, strict=True))}
        return {partition: count for partition, count in counts.items() if count > 0}

    def _offsets(self, at: Position) -> Sequence[int]:
        """Return a position in each partition of reports. There may be more partitions than when it was noted."""
        return (*at.offsets, *[0] * self._offsets_partitions)[: self._offsets_partitions]

    def _read_again(self, after: Position, end: Position) -> _Batch:
        address = self._connection.address
        reader = self._at(address.events, 0, after.events)
        control = [_taken(record, 0, is_control=True) for record in reader.take(end.events, _ALL)]
        reports: list[Taken] = []
        for partition, (begin, last) in enumerate(zip(self._offsets(after), self._offsets(end), strict=True)):
            if begin < last:
                reader = self._at(address.offsets, partition, begin)
                reports += [_taken(record, partition, is_control=False) for record in reader.take(last, _ALL)]
        return _Batch(after, end, control, reports, is_whole=False)

    def _at(self, topic: str, partition: int, offset: int) -> LogReader:
        """Return the reader of a partition, at ``offset``. Skip reports that retention has removed."""
        reader = self._readers.get((topic, partition))
        if reader is None:
            reader = self._readers[topic, partition] = LogReader(self._connection, topic, partition, **_FOLLOWING)
        if not reader.stands_at(offset):
            start = self._connection.start_offset(topic, partition)
            if start > offset and topic == self._connection.address.events:
                raise TrimmedError(
                    f"bus {self._connection.address}: events up to {seq_of(start - 1)} were removed; "
                    f"{seq_of(offset)} was asked for"
                )
            reader.seek(max(offset, start))
        return reader

    def close(self) -> None:
        for reader in self._readers.values():
            reader.close()


def in_order(control: Sequence[Taken], reports: Sequence[Taken], before: int) -> Iterator[tuple[int, Taken]]:
    """Give the events in order, each with its seq. ``before`` is the last event's seq in the batch before."""
    at = _last_tick(control)
    reports_after = _seq_before_reports(control, before)
    for one in control[:at]:
        yield seq_of(one.offset), one
    yield from enumerate(reports, start=reports_after + 1)
    for one in control[at:]:
        yield seq_of(one.offset), one


def _last_tick(control: Sequence[Taken]) -> int:
    """Return the index of the last tick; without one, the number of events."""
    return next((nth for nth in reversed(range(len(control))) if _is_tick(control[nth].raw)), len(control))


def _seq_before_reports(control: Sequence[Taken], before: int) -> int:
    at = _last_tick(control)
    return seq_of(control[at - 1].offset) if at else before


def _within(reader: LogReader, partition: int, end: int, bounds: Bounds, *, is_control: bool) -> Iterator[Taken]:
    """Take events up to the offset ``end`` or the bounds, and at least one, if there is any."""
    count = weight = 0
    while (record := reader.peek(end)) is not None:
        count += 1
        weight += weight_of(record.value)
        if count > 1 and (count > bounds.events or weight > bounds.weight):
            return
        reader.skip()
        yield _taken(record, partition, is_control=is_control)


def _taken(record: Record, partition: int, *, is_control: bool) -> Taken:
    return Taken(partition, record.offset, record.value, record.time_ms, is_control)


def _entry(seq: int, one: Taken, claims: Claims) -> Entry:
    if not one.is_control:
        return Entry(seq, one.raw, one.time_ms, False)
    return Entry(seq, one.raw, one.time_ms, one.offset in claims.offsets, found_ms(seq, claims.found))


def _is_tick(raw: bytes) -> bool:
    return b"tick" in raw and isinstance(decode(raw), Tick)
