"""A broker's copy of the metadata log: its directory ``__cluster_metadata-0``, read and checked.

A broker appends batches as it fetched them, so its segments have the gateway's bytes. It may have made its snapshots
itself.
"""

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.log.errors import StorageError
from brokers.gateways.kraft.log.snapshots import SnapshotId
from brokers.gateways.kraft.metadata.image import NO_QUORUM, MetadataImage
from brokers.wire.batch_header import Batch, batch_at, intact
from brokers.wire.metadata.topic import METADATA_DIRECTORY

_SEGMENT = re.compile(r"([0-9]{20})\.log")
_EPOCHS = "leader-epoch-checkpoint"


class CopyError(StorageError):
    """A broker's copy cannot be used. The message names the copy and the reason."""


class Copied(NamedTuple):
    """One batch: its header, and its position in the data of its copy."""

    batch: Batch
    position: int


class BrokerCopy(NamedTuple):
    """The copy that ``broker`` has: consecutive whole batches, after ``snapshot`` or from offset 0."""

    directory: Path
    broker: int
    snapshot: SnapshotId | None
    data: bytes
    batches: tuple[Copied, ...]

    @property
    def start_offset(self) -> int:
        return self.snapshot.end_offset if self.snapshot else 0

    @property
    def end_offset(self) -> int:
        return self.batches[-1].batch.next_offset if self.batches else self.start_offset

    def image(self) -> MetadataImage:
        """Return the image before the first batch. Raises ``StorageError``."""
        return MetadataImage() if self.snapshot is None else snapshots.read_image(self.directory, self.snapshot)


def read(directory: Path, cluster_id: str) -> BrokerCopy:
    """Read a broker's copy. Raises ``CopyError`` if it is another cluster's, damaged or has gaps."""
    if directory.name != METADATA_DIRECTORY and (directory / METADATA_DIRECTORY).is_dir():
        directory = directory / METADATA_DIRECTORY
    try:
        broker = _broker_of(directory, cluster_id)
        bases = sorted(int(match[1]) for path in directory.iterdir() if (match := _SEGMENT.fullmatch(path.name)))
        pieces = [(directory / f"{base:020d}.log").read_bytes() for base in bases]
        held = snapshots.held_in(directory)
        epochs = (directory / _EPOCHS).read_text() if (directory / _EPOCHS).exists() else ""
    except (OSError, ValueError) as error:
        raise CopyError(f"{directory} cannot be read: {error}") from error
    if not bases:
        raise CopyError(f"{directory} holds no segment of a metadata log")
    data, batches = _joined(directory, pieces)
    if batches and batches[0].batch.base_offset != bases[0]:
        raise CopyError(f"{directory}: the first segment does not begin at offset {bases[0]}")
    try:
        _compare_epochs(directory, epochs, batches)
    except ValueError as error:
        raise CopyError(f"{directory}: {_EPOCHS} cannot be read: {error}") from error
    snapshot = _beginning(directory, bases[0], held, batches)
    kept = tuple(one for one in batches if snapshot is None or one.batch.base_offset >= snapshot.end_offset)
    begins = kept[0].position if kept else len(data)
    moved = tuple(one._replace(position=one.position - begins) for one in kept)
    return BrokerCopy(directory, broker, snapshot, data[begins:], moved)


def _broker_of(directory: Path, cluster_id: str) -> int:
    path = directory.parent / "meta.properties"
    lines = [line.split("=", 1) for line in path.read_text().splitlines() if "=" in line and line[0] != "#"]
    properties = {name.strip(): value.strip() for name, value in lines}
    if properties.get("cluster.id") != cluster_id:
        raise CopyError(f"{directory} belongs to cluster {properties.get('cluster.id')}, not to {cluster_id}")
    return int(properties.get("node.id", properties.get("broker.id", "-1")))


def _joined(directory: Path, pieces: Sequence[bytes]) -> tuple[bytes, tuple[Copied, ...]]:
    """Return all whole batches. A partial write at the end of the last segment is ignored."""
    whole, batches = bytearray(), list[Copied]()
    for number, piece in enumerate(pieces):
        begins, is_last = len(whole), number == len(pieces) - 1
        found, end = _walked(directory, piece, is_last=is_last)
        batches += [Copied(batch, begins + position) for position, batch in found]
        whole += piece[:end]
    for before, after in pairwise(batches):
        if after.batch.base_offset != before.batch.next_offset:
            raise CopyError(
                f"{directory}: offset {after.batch.base_offset} follows {before.batch.last_offset}: records are missing"
            )
        if after.batch.leader_epoch < before.batch.leader_epoch:
            raise CopyError(
                f"{directory}: epoch {after.batch.leader_epoch} at offset {after.batch.base_offset} follows "
                f"{before.batch.leader_epoch}"
            )
    return bytes(whole), tuple(batches)


def _walked(directory: Path, data: bytes, *, is_last: bool) -> tuple[list[tuple[int, Batch]], int]:
    view, position = memoryview(data), 0
    found: list[tuple[int, Batch]] = []
    while position < len(view):
        batch = batch_at(view, position)
        end = len(view) + 1 if batch is None else position + batch.size
        if batch is None or end > len(view) or not intact(view[position:end], batch):
            # Nothing whole follows what a crash cut off; Kafka pads with zeros.
            if is_last and (end >= len(view) or not any(view[position:])):
                break
            raise CopyError(f"{directory} is damaged at byte {position} of a segment of {len(view)} bytes")
        found.append((position, batch))
        position = end
    return found, position


def _compare_epochs(directory: Path, text: str, batches: Sequence[Copied]) -> None:
    """Compare the batches with the broker's own note of where epochs begin (``leader-epoch-checkpoint``)."""
    bases = [one.batch.base_offset for one in batches]
    noted = [line.split() for line in text.splitlines()[2:]]
    for epoch, offset in [(int(line[0]), int(line[1])) for line in noted if len(line) == 2]:
        if not batches or not bases[0] < offset < batches[-1].batch.next_offset:
            # The first epoch may be that of the snapshot before it.
            continue
        if (held := batches[bisect_right(bases, offset) - 1].batch).leader_epoch != epoch:
            raise CopyError(
                f"{directory}: {_EPOCHS} says that epoch {epoch} begins at offset {offset}, but the batch there is of "
                f"epoch {held.leader_epoch}"
            )


def _beginning(directory: Path, base: int, held: Sequence[SnapshotId], batches: Sequence[Copied]) -> SnapshotId | None:
    """Return the snapshot that the log begins with; None if it begins at offset 0."""
    if base == 0:
        return None
    begins = {one.batch.base_offset for one in batches} | ({batches[-1].batch.next_offset} if batches else {base})
    fitting = [snapshot for snapshot in held if snapshot.end_offset in begins and snapshot.epoch > NO_QUORUM]
    if not fitting:
        raise CopyError(f"{directory}: the log begins at offset {base}, and no snapshot does")
    return fitting[0]
