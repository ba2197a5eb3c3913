"""Older states of a bus on Kafka: whole copies in a topic of their own.

The problem: the state's topic is compacted, so it has only the newest state. A copy of a large state takes a while, and
a kill may come in the middle.

    partition 0    pages of 10 │ pages of 20 │ pages of 30, cut off by a kill
    partition 1    index: 10   │ index: 10 20

The insight: the copy is written in the background, and no batch waits for it. It counts only once an index names it,
and a reader reads only the newest index.
"""

import contextlib
import struct

import msgspec
from confluent_kafka import TopicPartition

from bus import pieces
from bus.interface import BusError, Image, Page, Snapshot
from bus.kafka.connection import Connection
from bus.kafka.log_reader import LogReader
from bus.kafka.sending import BULK, DeliveryReports, Sender

PARTITIONS = 2
_PAGES, _INDEX = 0, 1
_LISTED_MAX = 10_000
# After all offsets.
_END = 2**63
_KEY = struct.Struct(">qiq")


class Stored(msgspec.Struct, frozen=True):
    """Where a snapshot's pages are: begin <= offset < end."""

    seq: int
    time_ms: int
    begin: int
    end: int


_index = msgspec.json.Decoder(list[Stored])


class Snapshots:
    """The snapshots of one bus."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._topic = connection.address.snapshots

    def listed(self) -> list[Snapshot]:
        """Return the snapshots whose pages are all there, oldest state first."""
        return [Snapshot(one.seq, one.time_ms) for one in self._stored()]

    def _stored(self) -> list[Stored]:
        end = self._connection.end_offset(self._topic, _INDEX)
        with contextlib.closing(LogReader(self._connection, self._topic, _INDEX)) as reader:
            newest = reader.last(self._connection.start_offset(self._topic, _INDEX), end)
        if newest is None:
            return []
        start = self._connection.start_offset(self._topic, _PAGES)
        try:
            held = [one for one in _index.decode(newest.value) if one.begin >= start]
            # Two jobs may have written them, the older state last.
            return sorted(held, key=lambda one: one.seq)
        except msgspec.MsgspecError as error:
            raise BusError(f"bus {self._connection.address}: the index of snapshots cannot be read: {error}") from error

    def read(self, seq: int) -> Image | None:
        """Return the state of the snapshot at ``seq``; None if there is none."""
        stored = next((one for one in self._stored() if one.seq == seq), None)
        if stored is None:
            return None
        found: list[Page] = []
        with contextlib.closing(LogReader(self._connection, self._topic, _PAGES)) as reader:
            reader.seek(stored.begin)
            while (record := reader.peek(stored.end)) is not None:
                reader.skip()
                of_seq, shard, page = _KEY.unpack(record.key)
                # A killed writer may have left pages of another snapshot here.
                if of_seq == seq:
                    found.append(Page(shard, page, record.value))
        return Image(seq, pieces.joined(found))

    def write(self, image: Image, time_ms: int) -> bool:
        """Write ``image`` and then the index with it. Return False if there is a snapshot at its seq already."""
        if any(one.seq == image.seq for one in self._stored()):
            return False
        with self._connection.errors():
            sender = Sender(self._connection.producer(**BULK), self._connection)
            begin = self._connection.end_offset(self._topic)
            reports = DeliveryReports()
            for page in pieces.cut(image.pages):
                key = _KEY.pack(image.seq, page.shard, page.page)
                sender.write(self._topic, key, page.body, reports=reports, partition=_PAGES)
            _flush(sender)
            stored = Stored(image.seq, time_ms, begin, reports.last_offset() + 1)
            # Read again, because a job that took over during the copy may have added snapshots.
            index = [one for one in self._stored() if one.seq != image.seq] + [stored]
            last = DeliveryReports()
            body = msgspec.json.encode(index[-_LISTED_MAX:])
            sender.write(self._topic, b"index", body, reports=last, partition=_INDEX)
            _flush(sender)
            last.last_offset()
        return True

    def drop(self, before: int) -> int:
        """Remove the pages of the snapshots before the seq ``before``. Return how many snapshots that were.

        A snapshot also stays if its pages come after those of a kept snapshot.
        """
        stored = self._stored()
        kept_from = min((one.begin for one in stored if one.seq >= before), default=_END)
        gone = [one for one in stored if one.begin < kept_from]
        if gone:
            end = min(kept_from, max(one.end for one in gone))
            self._connection.delete_records(TopicPartition(self._topic, _PAGES, end))
        return len(gone)


def _flush(sender: Sender) -> None:
    try:
        sender.flush()
    except BusError:
        sender.producer.purge()
        raise
