"""Snapshots of the metadata log, named and written as Kafka does (KIP-630)."""

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from brokers.files import write_all
from brokers.gateways.kraft.log.entries import control_record, portions, records_of_batch, voter_record
from brokers.gateways.kraft.log.errors import DamagedError
from brokers.gateways.kraft.metadata.draft import ReplayError
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.snapshot import control_records_of, image_of, records_of
from brokers.wire.batch_header import batches_in, intact
from brokers.wire.messages import WireError
from brokers.wire.metadata.record_frame import Record
from brokers.wire.record_batch import (
    SNAPSHOT_FOOTER,
    SNAPSHOT_HEADER,
    KeyAndValue,
    control_key,
    decode_batches,
    encode_batch,
)
from conf.whole_file import flush_directory

_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")
_UNFINISHED = ".part"
_CHUNK_RECORDS = 10_000


class SnapshotId(NamedTuple):
    """The name of a snapshot: it holds the log before ``end_offset``, whose last record is of ``epoch``."""

    end_offset: int
    epoch: int


class Piece(NamedTuple):
    """Some bytes of a file, and the size of the whole file."""

    data: bytes
    size: int


def path_of(directory: Path, snapshot: SnapshotId) -> Path:
    return directory / f"{snapshot.end_offset:020d}-{snapshot.epoch:010d}.checkpoint"


def held_in(directory: Path) -> list[SnapshotId]:
    """List the whole snapshots, oldest first."""
    names = [_NAME.fullmatch(path.name) for path in directory.iterdir()]
    return sorted(SnapshotId(int(name[1]), int(name[2])) for name in names if name is not None)


def remove_unfinished(directory: Path) -> None:
    """Remove the snapshots that a crash left unfinished. Call it while no snapshot is being written."""
    for unfinished in directory.glob(f"*.checkpoint{_UNFINISHED}"):
        unfinished.unlink()


def write(directory: Path, snapshot: SnapshotId, image: MetadataImage, time_ms: int) -> None:
    """Write ``image`` as a snapshot. It gets its name once all of it is on disk.

    ``time_ms`` is the time of the last record that it covers. This may run at the same time as anything else.
    """
    path = path_of(directory, snapshot)
    unfinished = path.with_name(path.name + _UNFINISHED)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        for data in _batches(snapshot.epoch, image, time_ms):
            write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    unfinished.replace(path)
    flush_directory(directory)


def _batches(epoch: int, image: MetadataImage, time_ms: int) -> Iterator[bytes]:
    offset = 0

    def batch(records: list[KeyAndValue], *, control: bool = False) -> bytes:
        nonlocal offset
        data = encode_batch(offset, epoch, time_ms, records, control=control)
        offset += len(records)
        return data

    header = control_record(SNAPSHOT_HEADER, "SnapshotHeaderRecord", LastContainedLogTimestamp=time_ms)
    yield batch([header, *map(voter_record, control_records_of(image))], control=True)
    records = records_of(image)
    while chunk := list(islice(records, _CHUNK_RECORDS)):
        for values in portions(chunk):
            yield batch([(None, value) for value in values])
    yield batch([control_record(SNAPSHOT_FOOTER, "SnapshotFooterRecord")], control=True)


def read_image(directory: Path, snapshot: SnapshotId) -> MetadataImage:
    """Read a snapshot. Raises ``DamagedError`` when it is not whole."""
    path = path_of(directory, snapshot)
    try:
        return image_of(_records(path.read_bytes()), snapshot.epoch)
    except (ReplayError, WireError, OSError) as error:
        raise _damaged(path, str(error)) from error


def check(directory: Path, snapshot: SnapshotId) -> None:
    """Check that a snapshot's batches are whole, without reading their records. Raises ``DamagedError``."""
    path = path_of(directory, snapshot)
    try:
        data = memoryview(path.read_bytes())
    except OSError as error:
        raise _damaged(path, str(error)) from error
    end = 0
    for position, batch in batches_in(data):
        if not intact(data[position : position + batch.size], batch):
            raise _damaged(path, f"the CRC of the batch at byte {position} does not match")
        end = position + batch.size
    if end == 0 or end < len(data):
        raise _damaged(path, f"it ends within a batch, at byte {end}")


def _damaged(path: Path, why: str) -> DamagedError:
    return DamagedError(
        f"snapshot {path} is damaged ({why}): without that file the gateway starts from the previous snapshot, "
        "or from the beginning of its log",
        spare=path,
    )


def _records(data: bytes) -> Iterator[Record]:
    is_whole = False
    for batch in decode_batches(data):
        yield from records_of_batch(batch)
        is_whole = batch.control and batch.records[0][0] == control_key(SNAPSHOT_FOOTER)
    if not is_whole:
        raise ReplayError("it has no footer")


def piece_of(path: Path, position: int, max_bytes: int) -> Piece:
    """Read up to ``max_bytes`` of a file from ``position``. The piece is empty at or beyond the file's end."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(min(max(position, 0), size))
        return Piece(file.read(max_bytes), size)


def remove(directory: Path, snapshot: SnapshotId) -> None:
    """Remove a snapshot."""
    path_of(directory, snapshot).unlink(missing_ok=True)
