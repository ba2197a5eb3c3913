"""The file that records which decisions a log came from: where the log ends after each event that added to it."""

import os
import struct
import zlib
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from brokers.files import closed, write_all
from brokers.gateways.kraft.log.directory import copy_aside
from brokers.gateways.kraft.log.errors import DamagedError

SUFFIX = ".ends"
_END = struct.Struct(">qqqiI")
_CHECK = struct.Struct(">I")
SIZE = _END.size + _CHECK.size


class End(NamedTuple):
    """The decisions up to ``seq`` are in the log up to ``offset``, which is at byte ``position`` of the file.

    ``crc`` covers the bytes that the event added. An end without added bytes means that the decisions since the end
    before it made no records.
    """

    seq: int
    offset: int
    position: int
    quorum_epoch: int
    crc: int


def _end_at(data: bytes, position: int) -> End | None:
    written = data[position : position + _END.size]
    is_whole = _CHECK.unpack_from(data, position + _END.size)[0] == zlib.crc32(written)
    return End(*_END.unpack(written)) if is_whole else None


class EndsFile:
    """The ends of one segment, oldest first. The first one is where the segment begins.

    An end is written after its batches are on disk, so bytes behind the last end were never whole.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)

    def read(self, *, cut: bool) -> list[End]:
        """Read all ends, and force them to disk, because a killed process may not have done so.

        With ``cut``, an unfinished last write is removed; without it, it counts as damage. If whole ends follow the
        unfinished one, a copy of the files is set aside first. Raises ``DamagedError``.
        """
        data = os.pread(self._descriptor, os.fstat(self._descriptor).st_size, 0)
        read = [_end_at(data, position) for position in range(0, len(data) - SIZE + 1, SIZE)]
        ends = [end for end in takewhile(lambda end: end is not None, read) if end is not None]
        if len(ends) * SIZE < len(data) and (ends or not cut):
            if not cut:
                raise DamagedError(f"{self._path} is damaged after {len(ends)} entries")
            if any(read[len(ends) :]):
                copy_aside(self._path.parent, (self._path, self._path.with_suffix(".log")))
            os.ftruncate(self._descriptor, len(ends) * SIZE)
        os.fsync(self._descriptor)
        return ends

    def append(self, ends: list[End]) -> None:
        """Write ends, and force them to disk."""
        data = bytearray()
        for end in ends:
            written = _END.pack(*end)
            data += written + _CHECK.pack(zlib.crc32(written))
        write_all(self._descriptor, data)
        os.fsync(self._descriptor)

    def close(self) -> None:
        self._descriptor = closed(self._descriptor)
