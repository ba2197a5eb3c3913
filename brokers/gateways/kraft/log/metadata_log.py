"""The metadata log of one gateway, in one directory.

The problem: a broker that has read a record never forgets it. A gateway that dies and comes back with a shorter log, or
with other bytes at an offset, stops every broker that fetches from it. And a metadata record does not say which
decision it came from, so the log alone does not tell where to continue.

The insight: keep two files, and write them in a fixed order. First the batches (``.log``, byte for byte what brokers
fetch) are forced to disk. Then one entry (``.ends``) says: decisions up to ``seq`` are in the log up to this byte, with
this CRC. Only after that may a broker read the batches.

    00…0.log   | batch | batch | batch |~~~~~~ never ended: cut off at the next start, and no broker has read it
    00…0.ends  | end   | end   | end   |
                                       ^ readable up to here; the next decision is end.seq + 1

So whatever write a crash interrupts, what was read is whole, and the rest is translated again from the decisions, to
the same bytes. The price is two waits for the disk per write.

A log must not grow without bound. A new segment begins with each snapshot. Two snapshots are kept, and the log from
the older one on. So a broker that is reading a snapshot when the next one is taken can finish it, and finds the log
after it.

    snapshot A        snapshot B
        | segment A ...... | segment B .....> end        segments before A are deleted when B is on disk
"""

import errno
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from brokers.gateways.kraft.log import segment as segments
from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.directory import locked
from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.errors import DamagedError
from brokers.gateways.kraft.log.segment import Segment, Unit
from brokers.gateways.kraft.log.snapshots import SnapshotId
from brokers.gateways.kraft.metadata.image import NO_QUORUM
from conf.whole_file import flush_directory

_BASE = re.compile(r"[0-9]{20}")
# The disk's errors that make a file unreadable.
_UNREADABLE = (errno.EIO, errno.EACCES, errno.EISDIR)
_NOTHING = End(seq=0, offset=0, position=0, quorum_epoch=NO_QUORUM, crc=0)


class EpochEnd(NamedTuple):
    """The end of a quorum epoch's records in this log."""

    epoch: int
    end_offset: int


class MetadataLog:
    """The log as segments, each of which begins at offset 0 or at a snapshot.

    ``is_sound`` is true until an append fails. The next start judges what that append left on disk.
    """

    def __init__(self, directory: Path, lock: BinaryIO | None = None, *, is_copy: bool = False) -> None:
        """Open a log, or begin one.

        ``lock`` is the lock of its directory, which is taken if none is given. ``close`` releases it. No crash has left
        anything unfinished in a copy, so nothing is cut off there, and all of it must be whole.
        Raises ``DamagedError`` when the log is damaged or cannot be read, ``StorageError`` when another process has it.
        """
        self.directory = directory
        self.is_sound = True
        self._lock = lock or locked(directory)
        self._segments: list[Segment] = []
        self._obsolete_segments: list[Segment] = []
        self._obsolete_snapshots: list[SnapshotId] = []
        try:
            self._open(is_copy=is_copy)
            snapshots.remove_unfinished(directory)
            self.snapshots = self._of_segments(snapshots.held_in(directory))
            self._trim()
        except BaseException as error:
            self.abandon()
            if isinstance(error, OSError) and error.errno in _UNREADABLE:
                raise DamagedError(f"{directory} is damaged: {error}") from error
            raise

    def _open(self, *, is_copy: bool) -> None:
        paths = self.directory.glob(f"*{segments.SUFFIX}")
        bases = sorted(int(path.stem) for path in paths if _BASE.fullmatch(path.stem))
        for base in bases:
            segment = Segment.open(self.directory, base, is_last=base == bases[-1] and not is_copy)
            if segment is None:
                break
            self._segments.append(segment)
            if len(self._segments) > 1 and (before := self._segments[-2].end.offset) != base:
                raise DamagedError(f"{segment.path} does not begin where the one before ends, at {before}")
        if not self._segments:
            self._segments.append(Segment.create(self.directory, _NOTHING))

    def _of_segments(self, held: list[SnapshotId]) -> list[SnapshotId]:
        """Keep the snapshots at which a segment begins, and the segments from the first one on.

        A crash may have left a snapshot without its segment, or a segment without its snapshot.
        """
        begins = {segment.base.offset: segment.base.quorum_epoch for segment in self._segments}
        kept = [snapshot for snapshot in held if begins.get(snapshot.end_offset) == snapshot.epoch]
        if self.start_offset > 0:
            if not kept:
                raise DamagedError(
                    f"{self.directory}: the log begins at offset {self.start_offset}, and no snapshot does"
                )
            self._begin_at(kept[0])
        for snapshot in held:
            if snapshot not in kept and snapshot.end_offset < self.start_offset:
                snapshots.remove(self.directory, snapshot)
        for snapshot in kept[:-1]:
            # Not the newest one, because that is read anyway.
            snapshots.check(self.directory, snapshot)
        return kept

    @property
    def start_offset(self) -> int:
        return self._segments[0].base.offset

    @property
    def end(self) -> End:
        """Where the log ends: offset, quorum epoch and decision."""
        return self._segments[-1].end

    def size_since(self, snapshot: SnapshotId | None) -> int:
        """Return how many bytes the log has after a snapshot; None means the newest one of ``snapshots``."""
        newest = snapshot or (self.snapshots[-1] if self.snapshots else None)
        offset = newest.end_offset if newest is not None else 0
        return sum(segment.end.position for segment in self._segments if segment.base.offset >= offset)

    def write(self, units: Sequence[Unit]) -> list[End]:
        """Write what events added, in their order, and force it to disk. It cannot be read before ``add``.

        This, ``following`` and ``remove_obsolete`` may run in another thread, one at a time.
        """
        assert self.is_sound, "nothing is appended after an append that failed"
        if not units:
            return []
        self.is_sound = False
        return self._segments[-1].write(units)

    def add(self, ends: Sequence[End]) -> None:
        """Make what ``write`` wrote last readable."""
        self._segments[-1].add(ends)
        self.is_sound = True

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that holds ``offset``: at least one, or none at the end."""
        for segment in reversed(self._segments):
            if segment.base.offset <= offset:
                return segment.read(offset, max_bytes)
        return b""

    def units(self, base: End) -> Iterator[Unit]:
        """Yield what each event after ``base`` added. ``base`` must be the beginning of a segment."""
        for segment in self._segments:
            if segment.base.offset >= base.offset:
                yield from segment.units(base.seq)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return where an epoch ends. For an epoch that is not in this log, return the nearest one below."""
        begins = [(NO_QUORUM, 0), (self._segments[0].base.quorum_epoch, self.start_offset)]
        for segment in self._segments:
            begins += [one for one in segment.epochs if one[0] != begins[-1][0]]
        below = [one for one in begins if one[0] <= epoch]
        following = [one for one in begins if one[0] > epoch]
        return EpochEnd(below[-1][0] if below else NO_QUORUM, following[0][1] if following else self.end.offset)

    def snapshot_for(self, offset: int, epoch: int) -> SnapshotId | None:
        """Return the snapshot for a reader that cannot continue at ``offset``, after a record of ``epoch``.

        None if the log has what follows, or if it differs from the reader's (``ReplicatedLog.validateOffsetAndEpoch``).
        """
        if not self.snapshots or (offset == 0 and self.start_offset == 0):
            return None
        earliest = self.snapshots[0]
        start = self.start_offset
        too_old = offset < start or (offset == start and epoch != earliest.epoch) or epoch < earliest.epoch
        return self.snapshots[-1] if too_old else None

    def base_of(self, snapshot: SnapshotId | None) -> End:
        """Return the end of the log where a snapshot was taken; None means the beginning of the log."""
        offset = 0 if snapshot is None else snapshot.end_offset
        return next(segment.base for segment in self._segments if segment.base.offset == offset)

    @property
    def files(self) -> list[tuple[str, int]]:
        """The files of the log, snapshots first, and how many bytes of each are whole."""
        held = [snapshots.path_of(self.directory, snapshot) for snapshot in self.snapshots]
        return [(path.name, path.stat().st_size) for path in held] + [
            file for segment in self._segments for file in segment.files
        ]

    def following(self, end: End) -> Segment | None:
        """Make the segment that begins at ``end``, where the log ends now or after the next ``add``.

        None if the last segment begins there.
        """
        return None if end.offset == self._segments[-1].base.offset else Segment.create(self.directory, end)

    def add_segment(self, segment: Segment) -> None:
        """Continue the log in the segment from ``following``."""
        self._segments.append(segment)

    def add_snapshot(self, snapshot: SnapshotId) -> None:
        """Add a snapshot that is on disk. Files that only snapshots older than the last two need become obsolete."""
        self.snapshots.append(snapshot)
        self._trim()

    def _trim(self) -> None:
        if len(self.snapshots) < 2:
            return
        self._begin_at(self.snapshots[-2])
        self._obsolete_snapshots += self.snapshots[:-2]
        self.snapshots = self.snapshots[-2:]

    def _begin_at(self, snapshot: SnapshotId) -> None:
        while self._segments[0].base.offset < snapshot.end_offset:
            self._obsolete_segments.append(self._segments.pop(0))

    def remove_obsolete(self) -> None:
        """Remove the obsolete files. Call it only after the log was compared with the decisions."""
        if not self._obsolete_segments and not self._obsolete_snapshots:
            return
        while self._obsolete_segments:
            self._obsolete_segments.pop(0).delete()
        while self._obsolete_snapshots:
            snapshots.remove(self.directory, self._obsolete_snapshots.pop(0))
        flush_directory(self.directory)

    def close(self) -> None:
        """Close all files."""
        self.abandon()
        self._lock.close()

    def abandon(self) -> None:
        """Close all files except the lock."""
        for segment in (*self._obsolete_segments, *self._segments):
            segment.close()
