"""The metadata log of one gateway: segments that begin at offset 0 or at a snapshot, in one directory."""

import errno
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from brokers.files import flush_directory
from brokers.gateways.kraft.log import segment as segments
from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.directory import locked
from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.errors import DamagedError
from brokers.gateways.kraft.log.segment import Segment, Unit
from brokers.gateways.kraft.log.snapshots import SnapshotId
from brokers.gateways.kraft.metadata.image import NO_QUORUM

_BASE = re.compile(r"[0-9]{20}")
# What a disk says of a file that it cannot give.
_UNREADABLE = (errno.EIO, errno.EACCES, errno.EISDIR)
_NOTHING = End(seq=0, offset=0, position=0, quorum_epoch=NO_QUORUM, crc=0)


class EpochEnd(NamedTuple):
    """Say where the records of a quorum epoch end in this log."""

    epoch: int
    end_offset: int


class MetadataLog:
    """Append what events add, and read it by offset; nothing is read before it is on disk.

    A new segment begins with each snapshot. Two snapshots stay, and the log from the older of them on.
    ``is_sound`` until an append fails: what that left on disk is for the next start to judge.
    """

    def __init__(self, directory: Path, lock: BinaryIO | None = None) -> None:
        """Open a log, or begin one; the ``lock`` of its directory is closed with it, and taken where none is given.

        Raises ``DamagedError`` when it is damaged or cannot be read, ``StorageError`` when another process has it.
        """
        self.directory = directory
        self.is_sound = True
        self._lock = lock or locked(directory)
        self._segments: list[Segment] = []
        try:
            self._open()
            snapshots.remove_unfinished(directory)
            self.snapshots = self._of_segments(snapshots.held_in(directory))
            self._trim()
        except BaseException as error:
            self.abandon()
            if isinstance(error, OSError) and error.errno in _UNREADABLE:
                raise DamagedError(f"{directory} is damaged: {error}") from error
            raise

    def _open(self) -> None:
        paths = self.directory.glob(f"*{segments.SUFFIX}")
        bases = sorted(int(path.stem) for path in paths if _BASE.fullmatch(path.stem))
        for base in bases:
            segment = Segment.open(self.directory, base, is_last=base == bases[-1])
            if segment is None:
                break
            self._segments.append(segment)
            if len(self._segments) > 1 and (before := self._segments[-2].end.offset) != base:
                raise DamagedError(f"{segment.path} does not begin where the one before ends, at {before}")
        if not self._segments:
            self._segments.append(Segment.create(self.directory, _NOTHING))

    def _of_segments(self, held: list[SnapshotId]) -> list[SnapshotId]:
        """Keep the snapshots at which a segment begins; a crash may have left one whose segment went."""
        begins = {segment.base.offset: segment.base.quorum_epoch for segment in self._segments}
        kept = [snapshot for snapshot in held if begins.get(snapshot.end_offset) == snapshot.epoch]
        for snapshot in held:
            if snapshot not in kept and snapshot.end_offset < self.start_offset:
                snapshots.remove(self.directory, snapshot)
        if self.start_offset > 0 and (not kept or kept[0].end_offset != self.start_offset):
            raise DamagedError(f"{self.directory}: the log begins at offset {self.start_offset}, and no snapshot does")
        for snapshot in kept[:-1]:
            # The newest one is read anyway.
            snapshots.check(self.directory, snapshot)
        return kept

    @property
    def start_offset(self) -> int:
        return self._segments[0].base.offset

    @property
    def end(self) -> End:
        """Say where the log ends: at which offset, in which quorum epoch, by which decisions."""
        return self._segments[-1].end

    @property
    def size_since_snapshot(self) -> int:
        """Count the bytes that are in no snapshot."""
        newest = self.snapshots[-1].end_offset if self.snapshots else 0
        return sum(segment.end.position for segment in self._segments if segment.base.offset >= newest)

    def append(self, units: Sequence[Unit]) -> None:
        """Write what events added, in the order of events, and force it to disk."""
        assert self.is_sound, "nothing is appended after an append that failed"
        if units:
            self.is_sound = False
            self._segments[-1].append(units)
            self.is_sound = True

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that holds ``offset`` on, one at least; none at the end."""
        for segment in reversed(self._segments):
            if segment.base.offset <= offset:
                return segment.read(offset, max_bytes)
        return b""

    def units(self, base: End) -> Iterator[Unit]:
        """Read what events added after ``base``, the beginning of a segment."""
        for segment in self._segments:
            if segment.base.offset >= base.offset:
                yield from segment.units(base.seq)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Find where an epoch ends; for one that this log has not, the nearest below it."""
        begins = [(NO_QUORUM, 0), (self._segments[0].base.quorum_epoch, self.start_offset)]
        for segment in self._segments:
            begins += [one for one in segment.epochs if one[0] != begins[-1][0]]
        below = [one for one in begins if one[0] <= epoch]
        following = [one for one in begins if one[0] > epoch]
        return EpochEnd(below[-1][0] if below else NO_QUORUM, following[0][1] if following else self.end.offset)

    def snapshot_for(self, offset: int, epoch: int) -> SnapshotId | None:
        """Name the snapshot to begin with for who cannot go on from ``offset``, whose last record is of ``epoch``.

        None where the log has what follows, or where it parts from theirs
        (``ReplicatedLog.validateOffsetAndEpoch``).
        """
        if not self.snapshots or (offset == 0 and self.start_offset == 0):
            return None
        earliest = self.snapshots[0]
        start = self.start_offset
        too_old = offset < start or (offset == start and epoch != earliest.epoch) or epoch < earliest.epoch
        return self.snapshots[-1] if too_old else None

    def base_of(self, snapshot: SnapshotId | None) -> End:
        """Say by which decisions the log stood where a snapshot was taken; None is its beginning."""
        offset = 0 if snapshot is None else snapshot.end_offset
        return next(segment.base for segment in self._segments if segment.base.offset == offset)

    @property
    def files(self) -> list[tuple[str, int]]:
        """Name the files that are the log, snapshots first, and say how many bytes of each are whole."""
        held = [snapshots.path_of(self.directory, snapshot) for snapshot in self.snapshots]
        return [(path.name, path.stat().st_size) for path in held] + [
            file for segment in self._segments for file in segment.files
        ]

    def begin_segment(self) -> SnapshotId:
        """Begin a new segment, and return the id of a snapshot of what stands before it."""
        if self.end.offset != self._segments[-1].base.offset:
            self._segments.append(Segment.create(self.directory, self.end))
        return SnapshotId(self.end.offset, self.end.quorum_epoch)

    def add_snapshot(self, snapshot: SnapshotId) -> None:
        """Count a snapshot in that is on disk; what only older ones than the last two need is removed."""
        self.snapshots.append(snapshot)
        self._trim()

    def _trim(self) -> None:
        if len(self.snapshots) < 2:
            return
        start = self.snapshots[-2].end_offset
        while self._segments[0].base.offset < start:
            self._segments.pop(0).delete()
        for old in self.snapshots[:-2]:
            snapshots.remove(self.directory, old)
        self.snapshots = self.snapshots[-2:]
        flush_directory(self.directory)

    def close(self) -> None:
        """Close all files."""
        self.abandon()
        self._lock.close()

    def abandon(self) -> None:
        """Close all files but the lock."""
        for segment in self._segments:
            segment.close()
