"""The part of a batch that is too much to travel through Spark. It is in a file, and rows name the place."""

import os
import tempfile
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import IO

import msgspec

# By default a batch on the embedded bus ends before this (``max.bytes.per.batch``).
SHIPPED_BYTES_MAX = 64 * 1024 * 1024


class Spilled(msgspec.Struct, frozen=True, array_like=True):
    """The place of a text in a file."""

    file: str
    start: int
    length: int


class Spill:
    """The texts of one batch. Those past ``SHIPPED_BYTES_MAX`` go to a file in ``directory``, if there is one.

    Spark's JVM holds rows on the heap, and a Python worker holds all rows of a key at once. The next batch removes the
    file. The last batch's file goes with the directory, which is the job's own.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._shipped = 0
        self._file: IO[bytes] | None = None
        if directory is not None and directory.is_dir():
            for left in directory.iterdir():
                left.unlink(missing_ok=True)

    def __enter__(self) -> "Spill":
        return self

    def shipped(self, raw: bytes) -> bytes | Spilled:
        """Return a text itself while there is room for it, otherwise its place in the file."""
        if self._directory is None or self._shipped + len(raw) <= SHIPPED_BYTES_MAX:
            self._shipped += len(raw)
            return raw
        if self._file is None:
            self._directory.mkdir(mode=0o700, exist_ok=True)
            self._file = tempfile.NamedTemporaryFile(dir=self._directory, delete=False)  # noqa: SIM115
        start = self._file.tell()
        self._file.write(raw)
        return Spilled(os.path.basename(self._file.name), start, len(raw))

    def flush(self) -> None:
        """Make everything so far visible to other processes."""
        if self._file is not None:
            self._file.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


def texts(directory: Path, places: Iterable[Spilled]) -> Iterator[bytes]:
    """Read spilled texts. Raises ``OSError``, also if a file is shorter than it was."""
    for name, in_file in groupby(places, key=_file_of):
        with (directory / name).open("rb") as file:
            for place in in_file:
                file.seek(place.start)
                raw = file.read(place.length)
                if len(raw) < place.length:
                    raise OSError(f"{file.name} was cut off")
                yield raw


def _file_of(place: Spilled) -> str:
    return place.file
