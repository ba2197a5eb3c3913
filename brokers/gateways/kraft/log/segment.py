"""One piece of the metadata log: a file of record batches, and beside it the ends of what each event added."""

import os
import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from brokers.files import closed, write_all
from brokers.gateways.kraft.log import ends
from brokers.gateways.kraft.log.ends import End, EndsFile
from brokers.gateways.kraft.log.errors import DamagedError
from brokers.wire.batch_header import HEADER, Batch, batch_at
from conf.whole_file import flush_directory

SUFFIX = ".log"


class Unit(NamedTuple):
    """The batches that one event added, up to ``end_offset``. There are no bytes if it made no records."""

    seq: int
    quorum_epoch: int
    data: bytes
    end_offset: int


class Segment:
    """The units from ``base`` on; only their ends are in memory.

    Batches are forced to disk before their ends, and ``end`` moves when both are there. So no broker has read the
    bytes that a crash leaves after the last end.
    """

    def __init__(self, directory: Path, base_offset: int) -> None:
        self.path = directory / f"{base_offset:020d}{SUFFIX}"
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._ends_path = self.path.with_suffix(ends.SUFFIX)
        self._ends = EndsFile(self._ends_path)
        self._offsets, self._positions, self._seqs = array("q"), array("q"), array("q")
        self.epochs: list[tuple[int, int]] = []

    @classmethod
    def create(cls, directory: Path, base: End) -> "Segment":
        """Begin a segment where another ends, or at offset 0."""
        path = directory / f"{base.offset:020d}{SUFFIX}"
        for left_over in (path, path.with_suffix(ends.SUFFIX)):
            left_over.unlink(missing_ok=True)
        segment = cls(directory, base.offset)
        begins = base._replace(position=0, crc=0)
        segment._ends.append([begins])
        flush_directory(directory)
        segment._begin(begins)
        return segment

    @classmethod
    def open(cls, directory: Path, base_offset: int, *, is_last: bool) -> "Segment | None":
        """Read a segment, and in the last one cut off what a crash left unfinished.

        Return None if a crash interrupted the creation of the last segment, so that it is empty. Raises
        ``DamagedError`` when bytes are missing or changed.
        """
        segment = cls(directory, base_offset)
        try:
            held = segment._ends.read(cut=is_last)
            if not held and is_last and segment._size() == 0:
                segment.delete()
                return None
            if not held or held[0].offset != base_offset:
                raise DamagedError(f"{segment._ends_path} does not say where {segment.path} begins")
            segment._begin(held[0])
            for end in held[1:]:
                segment._note(end)
            segment._check(held, is_last=is_last)
        except BaseException:
            segment.close()
            raise
        return segment

    def _begin(self, base: End) -> None:
        self.base = self.end = base
        self._note(base)

    def _note(self, end: End) -> None:
        if end.position > self.end.position and (not self.epochs or self.epochs[-1][0] != end.quorum_epoch):
            self.epochs.append((end.quorum_epoch, self.end.offset))
        self.end = end
        for values, value in ((self._offsets, end.offset), (self._positions, end.position), (self._seqs, end.seq)):
            values.append(value)

    def _check(self, held: list[End], *, is_last: bool) -> None:
        size = self._size()
        if size < self.end.position or (size > self.end.position and not is_last):
            raise DamagedError(f"{self.path} has {size} bytes where {self.end.position} were written")
        for before, end in pairwise(held):
            if end.position < before.position:
                raise DamagedError(f"{self._ends_path} is damaged: it goes back at offset {end.offset}")
            data = self._pread(before.position, end.position - before.position)
            if zlib.crc32(data) != end.crc:
                raise DamagedError(f"{self.path} is damaged between offsets {before.offset} and {end.offset}")
        if size > self.end.position:
            os.ftruncate(self._descriptor, self.end.position)

    def append(self, units: Sequence[Unit]) -> None:
        """Write units in order, and force them to disk; then they can be read."""
        self.add(self.write(units))

    def write(self, units: Sequence[Unit]) -> list[End]:
        """Write units in order, force them to disk, and return their ends. They cannot be read yet.

        This may run in a thread of its own.
        """
        data = b"".join([unit.data for unit in units])
        if data:
            write_all(self._descriptor, data)
            os.fsync(self._descriptor)
        position, added = self.end.position, []
        for unit in units:
            position += len(unit.data)
            added.append(End(unit.seq, unit.end_offset, position, unit.quorum_epoch, zlib.crc32(unit.data)))
        self._ends.append(added)
        return added

    def add(self, ends: Sequence[End]) -> None:
        """Make what ``write`` wrote readable."""
        for end in ends:
            self._note(end)

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that holds ``offset``: at least one, then as many as fit.

        Only their bytes are read, and the headers of the other batches of a unit that does not fit as a whole.
        """
        first = bisect_right(self._offsets, offset)
        if first == len(self._offsets):
            return b""
        begin, batch = self._positions[first - 1], self._batch_at(self._positions[first - 1])
        while batch.next_offset <= offset:
            begin += batch.size
            batch = self._batch_at(begin)
        end, unit_end = begin + batch.size, self._positions[first]
        if begin + max_bytes >= unit_end:
            end = self._positions[bisect_right(self._positions, begin + max_bytes) - 1]
        while end < unit_end and (end_after := end + self._batch_at(end).size) <= begin + max_bytes:
            end = end_after
        return self._pread(begin, end - begin)

    def _batch_at(self, position: int) -> Batch:
        """Read the header of the batch at ``position``. Raises ``DamagedError`` if there is none."""
        batch = batch_at(self._pread(position, HEADER.size), 0)
        if batch is None:
            raise DamagedError(f"{self.path} is damaged: no batch begins at byte {position}")
        return batch

    def units(self, after: int) -> Iterator[Unit]:
        """Yield the units of the events that come after the seq ``after``, in order."""
        for at in range(max(1, bisect_right(self._seqs, after)), len(self._seqs)):
            start, position = self._positions[at - 1], self._positions[at]
            if position > start:
                data = self._pread(start, position - start)
                epoch = next(epoch for epoch, begins in reversed(self.epochs) if begins < self._offsets[at])
                yield Unit(self._seqs[at], epoch, data, self._offsets[at])

    @property
    def files(self) -> list[tuple[str, int]]:
        """Both files, and how many bytes of each are whole."""
        return [(self.path.name, self.end.position), (self._ends_path.name, len(self._seqs) * ends.SIZE)]

    def _size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def _pread(self, position: int, size: int) -> bytes:
        data = os.pread(self._descriptor, size, position)
        while len(data) < size and (more := os.pread(self._descriptor, size - len(data), position + len(data))):
            data += more
        return data

    def close(self) -> None:
        self._ends.close()
        self._descriptor = closed(self._descriptor)

    def delete(self) -> None:
        """Close and remove both files. The ends go last, because a log file without ends would count as damaged."""
        self.close()
        self.path.unlink(missing_ok=True)
        self._ends_path.unlink(missing_ok=True)
