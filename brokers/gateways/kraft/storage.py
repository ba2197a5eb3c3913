"""The metadata log together with its image: what a gateway serves to brokers.

The problem: translating decisions takes time, waiting for the disk takes time, and a gateway with one event loop must
answer heartbeats meanwhile. But an image that is ahead of the disk would let brokers see what a crash takes back.

The insight: separate the work from the effect. ``prepared`` translates decisions from the present image and offset and
changes nothing, so it runs in another thread. ``append`` runs in the event loop: it writes all that was prepared, waits
for the disk, and only then replaces image and place. So every reader in the event loop sees a log, an image and a place
that belong together and are on disk.

    thread      prepared(e1..e9)           prepared(e10..e14)
    event loop                   append                      append      fetches see e1..e9, then e1..e14
    disk                         .log, then .ends            ...         a crash between the two: e1..e9 again

A crash may stop this anywhere (``tests/brokers/kraft/test_storage_crashes.py`` stops it at every write, with all, part
or none of it on disk, and with and without the loss of unforced writes):

* within the batches or before their ends: nobody has read them, and the next start cuts them off;
* after the ends, before any fetch sees them: the next start finds them in the log, and continues after them;
* within a snapshot: it has no name yet, and the next start removes it;
* after a failed append nothing more is appended by this process, because what is on disk is no longer known.

Many events make no records. They are noted once in ``NOTED_EVERY_EVENTS``, because to wait for the disk for each would
be wasteful, and a start may read some of them again without harm.
"""

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

# A start reads at most this many events without records again.
NOTED_EVERY_EVENTS = 1_000


class Prepared(NamedTuple):
    """The decisions on some events, their records, and the image and place after them."""

    events: Sequence[Sequence[AnyDecision]]
    units: Sequence[Unit]
    image: MetadataImage
    seq: int
    time_ms: int


class Storage:
    """The log that decisions are turned into, and that brokers fetch.

    ``begin`` is called first, once. Then decisions are prepared in order, and each result is appended before the next
    is prepared. What ``append`` wrote is on disk when it returns, and cannot be read before. Reads happen in the thread
    that appends; snapshots are written in a thread of their own.
    """

    def __init__(
        self,
        directory: Path,
        lock: BinaryIO | None = None,
        *,
        snapshot_interval_bytes: int = SNAPSHOT_INTERVAL_BYTES,
    ) -> None:
        """Open the log in ``directory``, or make one. Raises ``StorageError`` when it is damaged."""
        self._log = MetadataLog(directory, lock)
        self._snapshot_interval_bytes = snapshot_interval_bytes
        self._image = MetadataImage()
        self._decided_seq = 0
        self._noted_every_seqs = NOTED_EVERY_EVENTS
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snapshot")
        self._snapshot: tuple[SnapshotId, Future[None]] | None = None
        self._appended = asyncio.Event()

    def begin(self, bus: Bus) -> None:
        """Compare the log with the decisions; ``decided_seq`` then says where to continue.

        Raises ``StorageError`` when the log differs from the decisions: then it must not be served.
        """
        self._decided_seq, self._image = compared(self._log, bus)
        self._noted_every_seqs = NOTED_EVERY_EVENTS * bus.seq_step

    @property
    def image(self) -> MetadataImage:
        """Return the image at the log's end."""
        return self._image

    @property
    def decided_seq(self) -> int:
        """Return the seq of the last event whose decisions are in the log and the image."""
        return self._decided_seq

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end.offset

    def prepared(self, events: Sequence[Sequence[AnyDecision]]) -> Prepared:
        """Translate the decisions on at least one event, which follow everything that was appended.

        This changes nothing, so it may run in any thread.
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
        """Write what was prepared last, all at once, and wait for the disk.

        Raises ``OSError`` when the disk fails. Then readers still see only what is certainly on disk, and nothing more
        may be appended.
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
        """Wait until something is appended, or until the time-out."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._appended.wait()
        except TimeoutError:
            return

    def _look_at_snapshots(self, time_ms: int) -> None:
        """Take in the snapshot that is finished, and begin one if it is time."""
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
        """Return whole batches from the one that holds ``offset``: at least one, or none at the end."""
        return self._log.read(offset, max_bytes)

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return where an epoch ends. For an epoch that is not in this log, return the nearest one below."""
        return self._log.end_of_epoch(epoch)

    def snapshot_for(self, offset: int, epoch: int) -> SnapshotId | None:
        """Return the snapshot for a reader that cannot continue at ``offset``; None if it can or its log differs."""
        return self._log.snapshot_for(offset, epoch)

    def read_snapshot(self, end_offset: int, epoch: int, position: int, max_bytes: int) -> Piece | None:
        """Read a piece of a snapshot; None if there is no such snapshot."""
        snapshot = SnapshotId(end_offset, epoch)
        if snapshot not in self._log.snapshots:
            return None
        return snapshots.read_piece(self._log.directory, snapshot, position, max_bytes)

    @property
    def files(self) -> list[tuple[str, int]]:
        """List the files of the log and how many bytes of each are whole; other gateways copy these.

        The last decision is noted first, so that a copy continues after exactly that one.
        """
        self._note()
        return self._log.files

    def _note(self) -> None:
        """Note the decisions since the last end, which made no records."""
        end = self._log.end
        if self._log.is_sound and self._decided_seq > end.seq:
            self._log.append([Unit(self._decided_seq, end.quorum_epoch, b"", end.offset)])

    def read_file(self, name: str, position: int, max_bytes: int) -> Piece | None:
        """Read a piece of one of ``files``; None if there is no such file any more."""
        if name not in dict(self._log.files):
            return None
        return snapshots.piece_of(self._log.directory / name, position, max_bytes)

    def close(self) -> None:
        """Wait for a snapshot that is being written, note the last decision, and close all files."""
        self._thread.shutdown(wait=True)
        try:
            self._note()
        finally:
            self._log.close()

    def abandon(self) -> None:
        """Close the files of a log that is not to be served; its directory stays locked by this process."""
        self._thread.shutdown(wait=True)
        self._log.abandon()
