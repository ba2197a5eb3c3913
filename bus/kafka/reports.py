"""Which reports of log ends each batch took in, and at which seqs, so that the past can be read back.

The problem: a batch gives reports their seqs (``seqs``), and the offsets topic is compacted. So after a while nobody
could say which reports a batch had, and the log could not be decided again.

The insight: the process that plans a batch has all of its reports at hand. It writes them down before the batch
runs, with the seqs between which the batch lies. A batch that is planned again, after a kill or by another job, is
written again. Whatever was planned before from the same place on is then void:

    written by epoch 1:   10 ─► 20    20 ─► 30    30 ─► 40 (never committed)
    written by epoch 2:                           30 ─► 35    35 ─► 41

A superseded job may still write, so a record's epoch counts before its place in the topic.
"""

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
from confluent_kafka import Producer, TopicPartition

from bus.interface import BusError, Entry
from bus.kafka.connection import Connection
from bus.kafka.delivery_reports import DeliveryReports
from bus.kafka.log_reader import LogReader, Record
from bus.kafka.sending import BULK, flush, send
from isrflow.kafka.seqs import SLOTS

RECORD_BYTES = 1024 * 1024
# How much one call of ``between`` holds. A batch has less.
READ_BYTES_MAX = 64 * 1024 * 1024
# How many records beside those asked for are looked at, because records of two jobs may be out of order.
MARGIN = 100
# The job's epoch, the seq before the batch, that of its last event, and which of the batch's records this is.
_KEY = struct.Struct(">qqqi")
_Row = tuple[int, int | None, bytes]
_rows = msgspec.msgpack.Decoder(list[_Row])
_encoder = msgspec.msgpack.Encoder()


class Taken(NamedTuple):
    """The reports of one planned batch."""

    epoch: int
    after: int
    through: int
    bodies: list[bytes]


class ReportLog:
    """The reports that batches took in. Only one thread at a time may write."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._topic = connection.address.reports
        self._producer: Producer | None = None
        # The oldest offset, and what is kept after it.
        self._kept = (-1, 0)

    def connect(self) -> Producer:
        """Return the client that writes. A new one takes half a second to get its id from Kafka."""
        if self._producer is None:
            self._producer = self._connection.producer(**BULK)
        return self._producer

    def write(self, epoch: int, after: int, through: int, entries: Iterable[Entry]) -> None:
        """Write down the reports among ``entries``. Raises ``BusError`` if that cannot be done."""
        delivered = DeliveryReports()
        producer = self.connect()
        with self._connection.errors():
            for nth, body in enumerate(_bodies(entries)):
                key = _KEY.pack(epoch, after, through, nth)
                send(
                    producer,
                    self._connection.address,
                    self._topic,
                    key,
                    body,
                    timeout_s=self._connection.timeout_s,
                    reports=delivered,
                )
            try:
                flush(producer, self._connection.address, self._connection.timeout_s)
            except BusError:
                producer.purge()
                self._producer = None
                raise
            delivered.last_offset()

    def between(self, after: int, through: int) -> tuple[list[Entry], int]:
        """Return the reports after ``after``, in order, and the seq through which they are complete.

        That is ``through``, or less if there are very many.
        """
        start, end = self._ends()
        if start == end:
            return [], through
        reader = LogReader(self._connection, self._topic)
        try:
            reader.seek_first(lambda record: _place(record)[2] > after, start, end)
            reader.seek(max(start, reader.next_offset - MARGIN))
            taken, complete = _read(reader, end, after, through)
        finally:
            reader.close()
        rows = (row for one in valid(taken) for body in one.bodies for row in _rows.decode(body))
        wanted = sorted(row for row in rows if after < row[0] <= complete)
        return [Entry(seq, raw, time_ms, False) for seq, time_ms, raw in wanted], complete

    def kept_after(self) -> int:
        """Return the seq after which every batch's reports are here. A bus of an older version lacks those before."""
        start, end = self._ends()
        if start == end:
            return 0
        kept_start, kept_after = self._kept
        if kept_start == start:
            return kept_after
        reader = LogReader(self._connection, self._topic)
        try:
            oldest = reader.first_at(start, end)
        finally:
            reader.close()
        if oldest is None:
            return 0
        _, after, through, nth = _place(oldest)
        self._kept = (start, through if nth else after)
        return self._kept[1]

    def forget(self, through: int) -> None:
        """Remove the reports of batches that end at ``through`` or before."""
        start, end = self._ends()
        if end - start <= MARGIN:
            return
        reader = LogReader(self._connection, self._topic)
        try:
            reader.seek_first(lambda record: _place(record)[2] > through, start, end)
            first = reader.next_offset - MARGIN
        finally:
            reader.close()
        if first > start:
            self._connection.delete_records(TopicPartition(self._topic, 0, first))

    def _ends(self) -> tuple[int, int]:
        return self._connection.start_offset(self._topic), self._connection.end_offset(self._topic)


def is_report(entry: Entry) -> bool:
    """Say whether an event is a report, by its place between two control events."""
    return entry.seq % SLOTS != 0


def valid(taken: Sequence[Taken]) -> list[Taken]:
    """Leave out what was planned, but then planned again from the same place or an earlier one."""
    found: list[Taken] = []
    planned_again = 2**63
    for one in sorted(taken, key=lambda one: one.epoch)[::-1]:
        if one.through <= planned_again:
            found.append(one)
        planned_again = min(planned_again, one.after)
    return found[::-1]


def _bodies(entries: Iterable[Entry]) -> Iterable[bytes]:
    """Yield at least one body, also without reports: it says that the batch has none."""
    rows: list[_Row] = []
    size = 0
    for entry in entries:
        if is_report(entry):
            rows.append((entry.seq, entry.entered_ms, entry.raw))
            size += len(entry.raw)
            if size >= RECORD_BYTES:
                yield _encoder.encode(rows)
                rows, size = [], 0
    yield _encoder.encode(rows)


def _read(reader: LogReader, end: int, after: int, through: int) -> tuple[list[Taken], int]:
    taken: list[Taken] = []
    beyond = size = 0
    while beyond < MARGIN and (record := reader.peek(end)) is not None:
        reader.skip()
        epoch, begin, last, nth = _place(record)
        is_wanted = last > after and begin < through
        beyond += begin >= through
        size += len(record.value) if is_wanted else 0
        if size > READ_BYTES_MAX and begin > after:
            # The batch at hand may not be whole. Later records may still replace what came before it.
            through = min(through, begin)
            is_wanted = False
        if nth == 0:
            taken.append(Taken(epoch, begin, last, []))
        mine = next((one for one in reversed(taken) if one[:3] == (epoch, begin, last)), None)
        if mine is not None and is_wanted:
            mine.bodies.append(record.value)
    return taken, through


def _place(record: Record) -> tuple[int, int, int, int]:
    epoch, after, through, nth = _KEY.unpack(record.key)
    return epoch, after, through, nth
