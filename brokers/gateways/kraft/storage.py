"""The metadata log and the image that goes with it: what a gateway serves to brokers."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, NamedTuple

from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.comparison import compared
from brokers.gateways.kraft.log.entries import encode_entry
from brokers.gateways.kraft.log.errors import StorageError as StorageError
from brokers.gateways.kraft.log.metadata_log import EpochEnd, MetadataLog
from brokers.gateways.kraft.log.segment import Unit
from brokers.gateways.kraft.log.snapshots import Piece, SnapshotId
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.gateways.kraft.settings import SNAPSHOT_INTERVAL_BYTES
from bus.interface import Bus
from state.decisions import AnyDecision

# How many events may come to nothing before that is noted: at a start they are not read again.
NOTED_EVERY_EVENTS = 1_000


class Prepared(NamedTuple):
    """Hold the decisions on some events, what is to be written of them, and the image and the place after them."""

    events: Sequence[Sequence[AnyDecision]]
    units: Sequence[Unit]
    image: MetadataImage
    seq: int
    time_ms: int


class Storage:
    """Turn decisions into the log, and give it to who fetches.

    ``begin`` comes first, once. Then decisions are ``prepared`` in order, and each time appended before the
    next; what ``append`` wrote is on disk when it returns, and nothing is read before. Whoever reads does so
    in the thread that appends; a snapshot is written beside it.
    """

    def __init__(
        self,
        directory: Path,
        lock: BinaryIO | None = None,
        *,
        snapshot_interval_bytes: int = SNAPSHOT_INTERVAL_BYTES,
    ) -> None:
        """Open the log in ``directory``, or make one there. Raises ``StorageError`` when it is damaged."""
        self._log = MetadataLog(directory, lock)
        self._snapshot_interval_bytes = snapshot_interval_bytes
        self._image = MetadataImage()
        self._decided_seq = 0
        self._noted_every_seqs = NOTED_EVERY_EVENTS
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snapshot")
        self._snapshot: tuple[SnapshotId, Future[None]] | None = None
        self._appended = asyncio.Event()

    def begin(self, bus: Bus) -> None:
        """Hold the log against the decisions, as far as it goes; ``decided_seq`` says from where to go on.

        Raises ``StorageError`` when the log is not what the decisions tell: then it must not be served.
        """
        self._decided_seq, self._image = compared(self._log, bus)
        self._noted_every_seqs = NOTED_EVERY_EVENTS * bus.seq_step

    @property
    def image(self) -> MetadataImage:
        """Give what the log comes to at its end."""
        return self._image

    @property
    def decided_seq(self) -> int:
        """Say which event's decisions were the last taken in."""
        return self._decided_seq

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end.offset

    def prepared(self, events: Sequence[Sequence[AnyDecision]]) -> Prepared:
        """Work out what the decisions on each event come to, of one at least, after all that was appended.

        Changes nothing, so this may run in any thread.
        """
        image, offset = self._image, self.end_offset
        units: list[Unit] = []
        for decisions in events:
            image, entry = translate(image, decisions)
            if entry is not None:
                unit = Unit(entry.seq, entry.quorum_epoch, *encode_entry(entry, offset))
                units.append(unit)
                offset = unit.end_offset
        last = events[-1][0]
        if last.seq - (units[-1].seq if units else self._log.end.seq) >= self._noted_every_seqs:
            units.append(Unit(last.seq, image.quorum_epoch, b"", offset))
        return Prepared(events, units, image, last.seq, last.time_ms)

    def append(self, prepared: Prepared) -> None:
        """Write what was prepared last, all of it with one wait for the disk.

        Raises ``OSError`` when the disk fails: what can be read stays what is on disk for sure, and nothing
        more may be appended.
        """
        before = self.end_offset
        self._log.append(prepared.units)
        self._image, self._decided_seq = prepared.image, prepared.seq
        self._look_at_snapshots(prepared.time_ms)
        if self.end_offset > before:
            self._wake()

    def _wake(self) -> None:
        self._appended.set()
        self._appended = asyncio.Event()

    async def until_appended(self, timeout_ms: int) -> None:
        """Wait until something more is in the log, or the time is over."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._appended.wait()
        except TimeoutError:
            return

    def _look_at_snapshots(self, time_ms: int) -> None:
        """Count in the snapshot that was written meanwhile, and begin one when it is time."""
        if self._snapshot is not None and self._snapshot[1].done():
            snapshot, written = self._snapshot
            self._snapshot = None
            written.result()
            self._log.add_snapshot(snapshot)
        if self._snapshot is None and self._log.size_since_snapshot >= self._snapshot_interval_bytes:
            snapshot = self._log.begin_segment()
            written = self._thread.submit(snapshots.write, self._log.directory, snapshot, self._image, time_ms)
            self._snapshot = snapshot, written

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that holds ``offset`` on, one at least; none at the end."""
        return self._log.read(offset, max_bytes)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Find where an epoch ends; for one that this log has not, the nearest below it."""
        return self._log.end_of_epoch(epoch)

    def snapshot_for(self, offset: int, epoch: int) -> SnapshotId | None:
        """Name the snapshot for who cannot go on from ``offset``; None who can, or whose log is another."""
        return self._log.snapshot_for(offset, epoch)

    def read_snapshot(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> Piece | None:
        """Read a piece of a snapshot; None when there is no such, or no more."""
        snapshot = SnapshotId(end_offset, epoch)
        if snapshot not in self._log.snapshots:
            return None
        return snapshots.read_piece(self._log.directory, snapshot, position, max_bytes)

    @property
    def files(self) -> list[tuple[str, int]]:
        """Name the files of the log, and say how many bytes of each are whole: other gateways copy these.

        Up to which decision they go is noted before, so a copy goes on after just that one.
        """
        self._note()
        return self._log.files

    def _note(self) -> None:
        """Note what came to nothing since the last end."""
        end = self._log.end
        if self._log.is_sound and self._decided_seq > end.seq:
            self._log.append([Unit(self._decided_seq, end.quorum_epoch, b"", end.offset)])

    def read_file(self, name: str, position: int, max_bytes: int) -> Piece | None:
        """Read a piece of one of ``files``; None when there is none of that name any more."""
        if name not in dict(self._log.files):
            return None
        return snapshots.piece_of(self._log.directory / name, position, max_bytes)

    def close(self) -> None:
        """Let a snapshot that is being written end, note what came to nothing since, and close all files."""
        self._thread.shutdown(wait=True)
        try:
            self._note()
        finally:
            self._log.close()

    def abandon(self) -> None:
        """Close the files of a log that is not to be served; its directory stays with this process."""
        self._thread.shutdown(wait=True)
        self._log.abandon()
