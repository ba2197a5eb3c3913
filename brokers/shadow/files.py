"""Read the metadata log from the files of a controller or a broker, live or copied.

    NNN.log                    a segment; the name is its first offset
    NNN-EEE.checkpoint         a snapshot of all before offset NNN, whose last record is of epoch EEE
    000-000.checkpoint         what a controller begins its log with, since Kafka 4.4; the log has that too

Every controller and every broker has the whole log. Files do not say what is committed. So if they are from a node that
lost office, the newest batches may be ones that the quorum never agreed on.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from brokers.shadow.decoding import decoded
from brokers.shadow.salvage import salvaged
from brokers.shadow.snapshot import decoded_snapshot
from brokers.shadow.source import Damage, Gap, Read, Snapshot
from brokers.wire.messages import WireError

_SEGMENT = re.compile(r"([0-9]{20})\.log")
_SNAPSHOT = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


class SnapshotFile(NamedTuple):
    """A snapshot: it covers the log before ``offset``, whose last record is of ``epoch``."""

    offset: int
    epoch: int
    path: Path


class Segment(NamedTuple):
    """A segment of the log from the offset ``base`` on."""

    base: int
    path: Path


class UnreadableError(Exception):
    """A snapshot is not whole. The message names it."""


def snapshots_in(directory: Path) -> list[SnapshotFile]:
    """List the finished snapshots, oldest first."""
    found = [(_SNAPSHOT.fullmatch(path.name), path) for path in directory.iterdir()]
    return sorted(SnapshotFile(int(name[1]), int(name[2]), path) for name, path in found if name)


def segments_in(directory: Path) -> list[Segment]:
    """List the segments, oldest first."""
    found = [(_SEGMENT.fullmatch(path.name), path) for path in directory.iterdir()]
    return sorted(Segment(int(name[1]), path) for name, path in found if name)


def is_log(path: Path) -> bool:
    """Return whether a file is a part of a metadata log, by its name."""
    return bool(_SEGMENT.fullmatch(path.name) or _SNAPSHOT.fullmatch(path.name))


def read_directory(directory: Path) -> Iterator[Read]:
    """Yield all that a metadata directory has: its oldest state, and what follows.

    Where records are missing, the next snapshot takes their place and that of the records up to it, because what these
    changed is not known. Raises ``OSError``.
    """
    snapshots, segments = snapshots_in(directory), segments_in(directory)
    expected = 0
    if not segments or segments[0].base > 0:
        # A log loses whole segments, so the first one may begin before the oldest snapshot.
        base = segments[0].base if segments else 0
        fitting = [one for one in snapshots if one.offset >= base]
        seed, damages = _first_whole(fitting if segments else fitting[::-1])
        yield from damages
        if seed is not None:
            yield seed
            expected = seed.offset
        elif segments and base > 0:
            yield Gap(0, base, "the log begins later, and there is no snapshot of what was before")
            expected = base
    yield from _batches(segments, snapshots, expected)


def _batches(segments: Sequence[Segment], snapshots: Sequence[SnapshotFile], expected: int) -> Iterator[Read]:
    for place, segment in enumerate(segments):
        is_last = place == len(segments) - 1
        if not is_last and segments[place + 1].base <= expected:
            continue
        for found in salvaged(segment.path.read_bytes(), expected, is_last=is_last):
            match found:
                case Gap():
                    if found.end > expected:
                        later, damages = _first_whole([one for one in snapshots if one.offset >= found.end])
                        yield from damages
                        expected = found.end if later is None else later.offset
                        yield Gap(found.start, expected, found.why)
                        if later is not None:
                            yield later
                case Damage():
                    yield found._replace(what=f"{segment.path.name}: {found.what}")
                case batch if batch.base_offset >= expected:
                    expected = batch.next_offset
                    yield decoded(batch)
                case _:
                    pass
    # The end of the log is lost.
    newest, damages = _first_whole([one for one in reversed(snapshots) if one.offset > expected])
    yield from damages
    if newest is not None:
        yield Gap(expected, newest.offset, "the log ends earlier")
        yield newest


def _first_whole(snapshots: Sequence[SnapshotFile]) -> tuple[Snapshot | None, list[Damage]]:
    """Read the first snapshot that is whole; the others before it are damaged."""
    damages: list[Damage] = []
    for one in snapshots:
        try:
            return read_snapshot(one), damages
        except UnreadableError as error:
            damages.append(Damage(one.offset, str(error)))
    return None, damages


def read_snapshot(file: SnapshotFile) -> Snapshot:
    """Read a snapshot. Raises ``UnreadableError`` if any of it is missing or damaged, or ``OSError``."""
    try:
        return decoded_snapshot(file.offset, file.epoch, file.path.read_bytes())
    except WireError as error:
        raise UnreadableError(f"snapshot {file.path.name}: {error}") from error
