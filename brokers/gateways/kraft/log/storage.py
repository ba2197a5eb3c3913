"""The metadata log together with its image: what a gateway serves to brokers.

The problem: translating decisions takes time, waiting for the disk takes time, and a gateway with one event loop must
answer heartbeats meanwhile. But with an image that is ahead of the disk, brokers would see records that a crash can
take back.

The insight: separate the work from the effect. ``prepared`` translates decisions from an image and an offset and
changes nothing. ``write`` takes everything that was prepared meanwhile, writes it at once, and waits for the disk,
which readers do not see either. Each of them runs in a thread of its own. Only ``add`` changes what readers see. In the
event loop, without a wait, it replaces log end, image and place. So every reader in the event loop sees a log, an image
and a place that belong together and are on disk.

    thread      prepared(e1..e9)  prepared(e10..e14)  prepared(e15)
    thread                        write(e1..e9)       write(e10..e15)         one wait for all that was prepared
    event loop                                 add                   add      fetches see e1..e9, then e1..e15
    disk                          .log, .ends                                 a crash between the two: e1..e9 again

A crash may stop this anywhere (``tests/brokers/gateways/kraft/log/test_storage_crashes.py`` stops it at every write,
with all, part or none of it on disk, and with and without the loss of unforced writes):

* within the batches or before their ends: no broker has read them, and the next start cuts them off;
* after the ends, before any fetch sees them: the next start finds them in the log, and continues after them;
* within a snapshot: it has no name yet, and the next start removes it;
* after the ends, before ``add``: as before. If the process ends cleanly at this point, it writes no further note.

After a failed append this process appends nothing more, because it no longer knows what is on disk.

Many events make no records. They are noted only once in ``NOTED_EVERY_EVENTS``, because waiting for the disk each time
would be wasteful, and a start may read some of them again without harm.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from brokers.engine.alike_decisions import AlikeDecisions, GivenDecision
from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.comparison import compared
from brokers.gateways.kraft.log.disk_failure import DiskFailure
from brokers.gateways.kraft.log.ends import End
from brokers.gateways.kraft.log.entries import encode_entry
from brokers.gateways.kraft.log.intervals import NOTED_EVERY_EVENTS, SNAPSHOT_INTERVAL_BYTES
from brokers.gateways.kraft.log.metadata_log import EpochEnd, MetadataLog
from brokers.gateways.kraft.log.prepared import Event, Prepared, Written
from brokers.gateways.kraft.log.recent_commits import RecentCommits
from brokers.gateways.kraft.log.segment import Segment, Unit
from brokers.gateways.kraft.log.snapshots import Piece, SnapshotId
from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import entry_of
from bus.interface import Bus
from state.decisions import HighWatermark, LeaderAndIsr

# These come in large numbers, and no part of the gateway but the log acts on them.
_FOR_THE_LOG_ALONE = (LeaderAndIsr, HighWatermark, AlikeDecisions)


class Storage:
    """The log that decisions are turned into, and that brokers fetch.

    Call ``begin`` first, once. Then decisions are prepared in order, and the results committed in the same order. They
    can be read only once they are on disk. Reads happen in the thread of the event loop. Snapshots are written in a
    thread of their own. ``failure`` has the first error of a read.
    """

    def __init__(
        self,
        directory: Path,
        lock: BinaryIO | None = None,
        *,
        snapshot_interval_bytes: int = SNAPSHOT_INTERVAL_BYTES,
    ) -> None:
        """Open the log in ``directory``, or make one. Raises ``StorageError`` when it is damaged."""
        self.failure = DiskFailure()
        self._log = MetadataLog(directory, lock)
        self._snapshot_interval_bytes = snapshot_interval_bytes
        self._image = MetadataImage()
        self._decided_seq = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="snapshot")
        self._snapshot: tuple[SnapshotId, Future[None]] | None = None
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="metadata-log")
        # Held from a write to its ``add``.
        self._writing = asyncio.Lock()
        self._noting: asyncio.Task[None] | None = None
        self._appended = asyncio.Event()
        self._commits = RecentCommits(time.monotonic())

    def begin(self, bus: Bus) -> None:
        """Compare the log with the decisions. Afterwards ``decided_seq`` is where to continue.

        Raises ``StorageError`` when the log differs from the decisions: then it must not be served.
        """
        self._decided_seq, self._image = compared(self._log, bus)

    @property
    def image(self) -> MetadataImage:
        """The image at the log's end."""
        return self._image

    @property
    def decided_seq(self) -> int:
        """The seq of the last event whose decisions are in the log and the image."""
        return self._decided_seq

    @property
    def start_offset(self) -> int:
        return self._log.start_offset

    @property
    def end_offset(self) -> int:
        return self._log.end.offset

    @property
    def commit_latency_ms(self) -> float:
        """How long a commit took on average lately, from its write until brokers could read it."""
        return self._commits.latency_s(time.monotonic()) * 1000

    @property
    def append_rate(self) -> float:
        """How many records were committed in a second on average lately."""
        return self._commits.records_per_s(time.monotonic())

    def prepared(self, events: Sequence[Sequence[GivenDecision]], after: Prepared | None = None) -> Prepared:
        """Translate the decisions on at least one event. They follow ``after``, or without it, the committed decisions.

        This changes nothing, so it may run in any thread.
        """
        if after is None:
            image, offset, noted_seq = self._image, self.end_offset, self._log.end.seq
        else:
            image, offset, noted_seq = after.image, after.end_offset, after.noted_seq
        units: list[Unit] = []
        # One draft for all events, because in a storm each of them changes a few partitions of the same topics.
        draft = MetadataDraft(image)
        for decisions in events:
            entry = entry_of(draft, decisions)
            if entry is not None:
                unit = Unit(entry.seq, entry.quorum_epoch, *encode_entry(entry, offset))
                units.append(unit)
                offset, noted_seq = unit.end_offset, unit.seq
        image, last = draft.image(), events[-1][0]
        if last.seq - noted_seq >= NOTED_EVERY_EVENTS:
            units.append(Unit(last.seq, image.quorum_epoch, b"", offset))
            noted_seq = last.seq
        told = [Event(one[0].seq, [d for d in one if not isinstance(d, _FOR_THE_LOG_ALONE)]) for one in events]
        return Prepared(told, units, image, last.seq, last.time_ms, offset, noted_seq)

    async def commit(self, group: Sequence[Prepared], committed: Callable[[], None]) -> None:
        """Write what was prepared, all at once and without blocking the event loop. Then make it readable.

        ``committed`` is called in the step in which it becomes readable. Raises ``OSError`` when the disk fails. Then
        readers still see only what is certainly on disk, and nothing more may be committed.
        """
        async with self._writing:
            self.failure.check()
            began_s, before = time.monotonic(), self.end_offset
            written = await asyncio.get_running_loop().run_in_executor(self._writer, self.write, group)
            self.add(written)
            committed()
            now_s = time.monotonic()
            self._commits.add(now_s, now_s - began_s, self.end_offset - before)

    def write(self, group: Sequence[Prepared]) -> Written:
        """Write at least one prepared result, and wait for the disk. Readers do not see it yet."""
        self._log.remove_obsolete()
        ends = self._log.write([unit for prepared in group for unit in prepared.units])
        snapshot = self._finished_snapshot()
        size = self._log.size_since(snapshot) + sum(prepared.size for prepared in group)
        segment = None
        if self._snapshot is None and size >= self._snapshot_interval_bytes:
            segment = self._begin_snapshot(ends[-1] if ends else self._log.end, group[-1])
        return Written(group[-1], ends, snapshot, segment)

    def _finished_snapshot(self) -> SnapshotId | None:
        if self._snapshot is None or not self._snapshot[1].done():
            return None
        snapshot, written = self._snapshot
        self._snapshot = None
        written.result()
        return snapshot

    def _begin_snapshot(self, end: End, last: Prepared) -> Segment | None:
        """Begin a snapshot of the log up to ``end``, and the segment that follows it."""
        segment, snapshot = self._log.following(end), SnapshotId(end.offset, end.quorum_epoch)
        written = self._thread.submit(snapshots.write, self._log.directory, snapshot, last.image, last.time_ms)
        self._snapshot = snapshot, written
        return segment

    def add(self, written: Written) -> None:
        """Make readable what was written last."""
        before = self.end_offset
        self._log.add(written.ends)
        self._image, self._decided_seq = written.last.image, written.last.seq
        if written.snapshot is not None:
            self._log.add_snapshot(written.snapshot)
        if written.segment is not None:
            self._log.add_segment(written.segment)
        if self.end_offset > before:
            self._appended.set()
            self._appended = asyncio.Event()

    async def until_appended(self, timeout_ms: int) -> None:
        """Wait until something is appended, or until the time-out."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._appended.wait()
        except TimeoutError:
            return

    def read(self, offset: int, max_bytes: int) -> bytes:
        """Return whole batches from the one that holds ``offset``: at least one, or none at the end."""
        with self.failure.noted():
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
        with self.failure.noted():
            return snapshots.piece_of(snapshots.path_of(self._log.directory, snapshot), position, max_bytes)

    async def files(self) -> list[tuple[str, int]]:
        """List the files of the log and how many bytes of each are whole; other gateways copy these.

        The last decision is noted first, so that a copy continues after exactly that decision.
        """
        if self._noting is None or self._noting.done():
            self._noting = asyncio.create_task(self._note())
        # Shielded, because a write must be added even if the gateway that asked has left.
        await asyncio.shield(self._noting)
        with self.failure.noted():
            return self._log.files

    async def _note(self) -> None:
        async with self._writing:
            self.failure.check()
            if unnoted := self._unnoted():
                loop = asyncio.get_running_loop()
                with self.failure.noted():
                    self._log.add(await loop.run_in_executor(self._writer, self._log.write, unnoted))

    def _unnoted(self) -> list[Unit]:
        """Return a note of the decisions since the last end, if there are any. They made no records."""
        end = self._log.end
        if not self._log.is_sound or self._decided_seq <= end.seq:
            return []
        return [Unit(self._decided_seq, end.quorum_epoch, b"", end.offset)]

    def read_file(self, name: str, position: int, max_bytes: int) -> Piece | None:
        """Read a piece of one of ``files``; None if there is no such file any longer."""
        with self.failure.noted():
            if name not in dict(self._log.files):
                return None
            return snapshots.piece_of(self._log.directory / name, position, max_bytes)

    def close(self) -> None:
        """Wait for what is being written, note the last decision, and close all files."""
        self._shut_down()
        try:
            if unnoted := self._unnoted():
                self._log.add(self._log.write(unnoted))
        finally:
            self._log.close()

    def abandon(self) -> None:
        """Close the files of a log that is not to be served; its directory stays locked by this process."""
        self._shut_down()
        self._log.abandon()

    def _shut_down(self) -> None:
        self._writer.shutdown(wait=True)
        self._thread.shutdown(wait=True)
