"""Find the metadata directory in a node's folder, in a log directory, in a copy of either, or in a tar or zip file."""

import lzma
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, NamedTuple

from brokers.shadow.files import is_log
from brokers.wire.metadata.topic import METADATA_DIRECTORY

_PROPERTIES = "meta.properties"
_DEPTH_MAX = 6
# Of all files that a bundle is unpacked to. Kafka keeps 100 MiB of log and snapshots by default.
UNPACKED_BYTES_MAX = 4 * 1024**3
# What unpacking raises for damage, for a password, and for a compression that this Python does not know.
_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    # gzip and bz2 raise it for damage, too.
    OSError,
    ValueError,
    NotImplementedError,
    RuntimeError,
)
_SETTING = re.compile(r"^(cluster\.id|node\.id|broker\.id)\s*=\s*(\S+)\s*$", re.MULTILINE)


class PlaceError(Exception):
    """There is no metadata log, or more than one. The message says what was looked for."""


class Place(NamedTuple):
    """A metadata directory, and what its node says of itself in ``meta.properties``."""

    directory: Path
    # None if there is no such file.
    cluster_id: str | None
    node: int | None


@contextmanager
def opened(named: Path) -> Iterator[Place]:
    """Find the metadata directory in a folder or a bundle. Raises ``PlaceError`` or ``OSError``."""
    if named.is_dir():
        yield found_in(named)
        return
    if not named.exists():
        raise PlaceError(f"{named} does not exist: expected a folder, or a tar or zip file")
    with TemporaryDirectory(prefix="isrflow-shadow-") as unpacked:
        try:
            _unpack(named, Path(unpacked))
        except tarfile.ReadError as error:
            # Its text has a line for each kind of compression.
            raise PlaceError(f"{named} is damaged, or neither a folder nor a tar or zip file") from error
        except _DAMAGED as error:
            raise PlaceError(f"{named} cannot be unpacked: {error}") from error
        yield found_in(Path(unpacked), said=named)


def found_in(folder: Path, said: Path | None = None) -> Place:
    """Find the metadata directory in a folder. Raises ``PlaceError``, which calls the folder ``said``."""
    name = said or folder
    places = sorted(_directories(folder, 0))
    if not places:
        raise PlaceError(
            f"{name} has no metadata log: expected {METADATA_DIRECTORY}, which is in metadata.log.dir "
            "or in the first of log.dirs"
        )
    if len(places) > 1:
        within = ", ".join(str(place.relative_to(folder)) for place in places)
        raise PlaceError(f"{name} has {len(places)} metadata logs, name the folder of one: {within}")
    return Place(places[0], *_properties(places[0]))


def _directories(folder: Path, depth: int) -> Iterator[Path]:
    """Yield the folders that have files of a metadata log."""
    entries = sorted(folder.iterdir())
    # Partitions of other topics have segments with such names too.
    if (depth == 0 or folder.name == METADATA_DIRECTORY) and any(is_log(path) for path in entries if path.is_file()):
        yield folder
    elif depth < _DEPTH_MAX:
        for path in entries:
            if path.is_dir() and not path.is_symlink():
                yield from _directories(path, depth + 1)


def _properties(directory: Path) -> tuple[str | None, int | None]:
    for path in (directory / _PROPERTIES, directory.parent / _PROPERTIES):
        if path.is_file():
            said: dict[str, str] = dict(_SETTING.findall(path.read_text(errors="replace")))
            node = said.get("node.id", said.get("broker.id", ""))
            return said.get("cluster.id"), int(node) if node.isdigit() else None
    return None, None


def _unpack(bundle: Path, folder: Path) -> None:
    """Unpack the files of metadata logs, and nothing else. Raises ``ValueError`` for a bundle that is too large."""
    left = UNPACKED_BYTES_MAX
    for name, size, file in _members(bundle):
        path = PurePosixPath(name)
        if ".." in path.parts or not (is_log(Path(path.name)) or path.name == _PROPERTIES):
            continue
        left -= size
        if left < 0:
            raise ValueError(f"its files have more than {UNPACKED_BYTES_MAX} bytes")
        target = folder.joinpath(*(part for part in path.parts if part != path.root))
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as written:
            shutil.copyfileobj(file, written)


def _members(bundle: Path) -> Iterator[tuple[str, int, IO[bytes]]]:
    if zipfile.is_zipfile(bundle):
        with zipfile.ZipFile(bundle) as packed:
            for entry in packed.infolist():
                if not entry.is_dir():
                    with packed.open(entry) as file:
                        yield entry.filename, entry.file_size, file
        return
    with tarfile.open(bundle) as unread:
        for member in unread:
            if member.isfile() and (found := unread.extractfile(member)) is not None:
                yield member.name, member.size, found
