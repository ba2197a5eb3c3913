"""The place that a reader has reached in the log, and the batches that are not committed yet.

A leader also sends what a majority does not have yet. Such batches are held back until the high watermark has passed
them. Another leader may not have them: it then says where its log and the reader's part.
"""

from collections import deque
from collections.abc import Iterator

from brokers.shadow.controller_line import Position, SnapshotId
from brokers.wire.batch_header import batches_in
from brokers.wire.messages import WireError
from brokers.wire.record_batch import RecordBatch, decode_batches
from brokers.wire.schema import Values

# What a leader without a majority appends before it resigns has some KiB.
HELD_BYTES_MAX = 64 << 20


class LogCutError(Exception):
    """A controller's log ends before a record that was committed: it lost its data, or is that of another cluster."""


class FetchedLog:
    """The position of a reader, which never takes a batch twice."""

    def __init__(self, position: Position) -> None:
        # Where the next fetch begins.
        self.position = position
        # Everything before it was handed on.
        self.committed = position
        self.high_watermark = -1
        # Whether the last answer had more than may be held.
        self.is_full = False
        self._held: deque[RecordBatch] = deque()
        self._held_bytes = 0

    @property
    def holds(self) -> bool:
        """Whether batches wait for the high watermark."""
        return bool(self._held)

    def take(self, partition: Values) -> Iterator[RecordBatch]:
        """Take the records of an answer, and yield the batches that are committed.

        Raises ``WireError`` if the records are damaged, or do not follow those before.
        """
        records = bytes(partition["Records"] or b"")
        # The last batch may be cut off, and is fetched again.
        whole = sum(batch.size for _, batch in batches_in(records))
        if records and not whole:
            raise WireError(f"an answer at offset {self.position.offset} without a whole batch")
        self.is_full = False
        for batch in decode_batches(memoryview(records)[:whole]):
            if self._held and self._held_bytes + batch.size > HELD_BYTES_MAX:
                self.is_full = True
                break
            self._hold(batch)
        self.high_watermark = max(self.high_watermark, partition["HighWatermark"])
        while self._held and self._held[0].next_offset <= self.high_watermark:
            batch = self._held.popleft()
            self._held_bytes -= batch.size
            self.committed = Position(batch.next_offset, batch.leader_epoch)
            yield batch

    def _hold(self, batch: RecordBatch) -> None:
        # A fetch from within a batch is answered with the whole batch.
        if batch.next_offset <= self.position.offset:
            return
        if batch.base_offset > self.position.offset:
            raise WireError(f"a batch at offset {batch.base_offset}, where {self.position.offset} was asked for")
        self._held.append(batch)
        self._held_bytes += batch.size
        self.position = Position(batch.next_offset, batch.leader_epoch)

    def part(self, diverging: SnapshotId) -> None:
        """Drop what the leader does not have; ``diverging`` is the end of the last epoch that both may have.

        Raises ``LogCutError`` if it was committed.
        """
        dropped = 0
        while self._held and (
            self._held[-1].next_offset > diverging.end_offset or self._held[-1].leader_epoch > diverging.epoch
        ):
            dropped += self._held.pop().size
        # Otherwise the next fetch would be the same one, and so would its answer.
        if not dropped or diverging.end_offset < self.committed.offset:
            raise LogCutError(
                f"the controller's log of epoch {diverging.epoch} ends at offset {diverging.end_offset}, but the "
                f"record before offset {self.committed.offset}, of epoch {self.committed.epoch}, was committed"
            )
        self._held_bytes -= dropped
        last = self._held[-1] if self._held else None
        self.position = Position(last.next_offset, last.leader_epoch) if last else self.committed

    def move(self, position: Position) -> None:
        """Go on after a snapshot. Nothing before it was missed any more."""
        self._held.clear()
        self._held_bytes = 0
        self.position = self.committed = position
