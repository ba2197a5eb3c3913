"""The log of one replica: append, read, truncate, recover."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from brokers.mock.log.batch import produced, stamped
from brokers.mock.log.epochs import EndOffset, LeaderEpochs
from brokers.mock.log.producers import Producers
from brokers.mock.log.record_times import first_at_or_after
from brokers.mock.log.segment import SUFFIX, Segment
from brokers.wire.batch_header import batches_in, intact
from brokers.wire.errors import ErrorCode, RefusedError
from conf.whole_file import flush_directory

logger = structlog.get_logger()


class LogConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a log, named like Kafka's settings of topics."""

    segment_bytes: int = 1024 * 1024 * 1024
    max_message_bytes: int = 1_048_588


class Appended(NamedTuple):
    """The place of a batch in the log; ``duplicate`` if it was there before."""

    base_offset: int
    last_offset: int
    duplicate: bool = False


class Log:
    """The batches of one replica, without gaps from ``log_start_offset`` to ``log_end_offset`` (exclusive).

    An append returns when the batch is written to the file, without a buffer, so a killed process loses none of it. The
    file is forced to disk when Kafka does so: when a segment is rolled, and at a clean stop.
    """

    def __init__(
        self, directory: Path, config: LogConfig, clean: bool, lost: Callable[[OSError], None] = lambda error: None
    ) -> None:
        """Open the log in ``directory``. Unless the last stop was ``clean``, check the CRCs of the newest segment.

        After an I/O error in a read or a change, ``lost`` is called and ``RefusedError`` KAFKA_STORAGE_ERROR is raised.
        """
        self._lost = lost
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.config = config
        self.epochs = LeaderEpochs(directory)
        self.producers = Producers()
        self._segments = self._opened(clean)

    def _opened(self, clean: bool) -> list[Segment]:
        segments: list[Segment] = []
        try:
            self._recover(segments, clean)
            self.epochs.truncate_from_end(segments[-1].next_offset)
        except OSError:
            # The broker may go on without this log, and then needs the descriptors.
            for segment in segments:
                segment.close()
            raise
        return segments

    def _recover(self, segments: list[Segment], clean: bool) -> None:
        bases = sorted(int(path.stem) for path in self.directory.glob(f"*{SUFFIX}")) or [0]
        for base in bases:
            segment = Segment(self.directory, base)
            if segments and base != segments[-1].next_offset:
                # This log never acknowledged records after a gap. The leader has them.
                logger.warning("segment dropped", path=str(segment.path), expected=segments[-1].next_offset)
                segment.delete()
                continue
            segments.append(segment)
            before = segment.path.stat().st_size
            for batch in segment.recover(check=not clean and base == bases[-1]):
                if batch.leader_epoch > self.epochs.latest:
                    self.epochs.assign(batch.leader_epoch, batch.base_offset)
                self.producers.note(batch)
            if segment.size < before:
                logger.warning("torn tail truncated", path=str(segment.path), bytes=before - segment.size)

    @property
    def log_start_offset(self) -> int:
        return self._segments[0].base_offset

    @property
    def log_end_offset(self) -> int:
        return self._segments[-1].next_offset

    @property
    def last_written_epoch(self) -> int:
        """The leader epoch of the last record; -1 without a record."""
        return self.epochs.last_before(self.log_end_offset) if self.log_end_offset > self.log_start_offset else -1

    @property
    def max_timestamp(self) -> int:
        return max(segment.max_timestamp for segment in self._segments)

    def append_as_leader(self, records: bytes | memoryview | None, leader_epoch: int) -> Appended:
        """Store a producer's batch at the next offsets in this leader's epoch. Raises ``RefusedError``."""
        batch = produced(records, self.config.max_message_bytes)
        repeated = self.producers.check(batch)
        if repeated is not None:
            return Appended(repeated.base_offset, repeated.last_offset, duplicate=True)
        assert records is not None
        base_offset = self.log_end_offset
        self._append(stamped(records, base_offset, leader_epoch))
        return Appended(base_offset, base_offset + batch.last_offset_delta)

    def append_as_follower(self, records: bytes | memoryview) -> None:
        """Store the leader's batches byte for byte. Raises ``RefusedError`` for one that does not follow."""
        view = memoryview(records)
        for position, batch in batches_in(view):
            data = view[position : position + batch.size]
            if not intact(data, batch):
                raise RefusedError(ErrorCode.CORRUPT_MESSAGE, f"the batch at {batch.base_offset} from the leader")
            if batch.base_offset != self.log_end_offset:
                raise RefusedError(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"{batch.base_offset} came, {self.log_end_offset} was expected"
                )
            self._append(data)

    def _append(self, data: bytearray | memoryview) -> None:
        active = self._segments[-1]
        with self._storage():
            # First, because an epoch without records does no harm, but records whose epoch is not noted would.
            for _, batch in batches_in(data):
                self.epochs.assign(batch.leader_epoch, batch.base_offset)
            if active.size and active.size + len(data) > self.config.segment_bytes:
                active = self._roll()
            active.append(data)
        for _, batch in batches_in(data):
            self.producers.note(batch)

    @contextlib.contextmanager
    def _storage(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._lost(error)
            raise RefusedError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _roll(self) -> Segment:
        self._segments[-1].flush()
        segment = Segment(self.directory, self.log_end_offset)
        self._segments.append(segment)
        flush_directory(self.directory)
        return segment

    def read(self, offset: int, max_bytes: int, upper: int) -> bytes:
        """Return whole batches from ``offset`` on that end at or before ``upper``; see ``Segment.read``.

        Raises ``RefusedError`` OFFSET_OUT_OF_RANGE.
        """
        if not self.log_start_offset <= offset <= self.log_end_offset:
            raise RefusedError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"{offset} not in {self.log_start_offset}..{self.log_end_offset}"
            )
        if offset >= upper:
            return b""
        holding = next(s for s in reversed(self._segments) if s.base_offset <= offset)
        with self._storage():
            return holding.read(offset, max_bytes, upper)

    def end_offset_for_epoch(self, epoch: int) -> EndOffset:
        return self.epochs.end_offset_of(epoch, self.log_end_offset)

    def begin_epoch(self, epoch: int) -> None:
        """Note that the records of ``epoch`` begin at the log's end. Raises ``OSError``."""
        self.epochs.assign(epoch, self.log_end_offset)

    def truncate_to(self, offset: int) -> None:
        """Remove every batch that reaches ``offset`` or beyond. Raises ``RefusedError``."""
        if offset < self.log_start_offset:
            self.restart_at(offset)
            return
        with self._storage():
            if offset < self.log_end_offset:
                self._cut(offset)
            # This broker may have begun an epoch without writing a record. That entry contradicts the leader's epochs.
            self.epochs.truncate_from_end(max(offset, self.log_end_offset))

    def _cut(self, offset: int) -> None:
        while len(self._segments) > 1 and self._segments[-1].base_offset >= offset:
            self._segments.pop().delete()
        self._segments[-1].truncate_to(offset)
        self._recount_producers()

    def restart_at(self, offset: int) -> None:
        """Remove everything, and continue with an empty log at ``offset``. Raises ``RefusedError``."""
        with self._storage():
            # Opened before the others are deleted, so that the log stays as it is if no more files may be opened.
            first = next((s for s in self._segments if s.base_offset == offset), None)
            first = first or Segment(self.directory, offset)
            former, self._segments = self._segments, [first]
            for segment in former:
                if segment is not first:
                    segment.delete()
            first.truncate_to(offset)
            self.producers.clear()
            self.epochs.clear()

    def _recount_producers(self) -> None:
        self.producers.clear()
        for segment in self._segments:
            for batch in segment.batches():
                self.producers.note(batch)

    def find_timestamp(self, timestamp: int, upper: int) -> tuple[int, int, int] | None:
        """Return (timestamp, offset, leader epoch) of the first record below ``upper`` that is not older.

        Raises ``RefusedError`` CORRUPT_MESSAGE if records make no sense.
        """
        for segment in self._segments:
            with self._storage():
                data = segment.find_timestamp(timestamp) if segment.max_timestamp >= timestamp else None
            if data is None:
                continue
            found = first_at_or_after(data, timestamp)
            if found is None or found[1] >= upper:
                return None
            _, batch = next(batches_in(data))
            return found[0], found[1], batch.leader_epoch
        return None

    def flush(self) -> None:
        """Force what was appended since the last roll to disk."""
        self._segments[-1].flush()

    def close(self) -> None:
        for segment in self._segments:
            segment.close()
