"""Jars by name: pinned coordinates, checked by hash, in our own cache. Maven is not needed.

    jars(set_name) -> list[Path]      the cached jars; raises ``JarsError`` if any is missing
    fetch(set_name) -> list[Path]     the same, after fetching what is missing

The sets (``SETS``) and their hashes are in ``jars.lock.toml``, which ``make lock`` writes:

* for each version of Kafka (``conf.kafka_versions``) a broker or controller, with a binding for its logs; the version
  that knows ZooKeeper has ZooKeeper's server too
* ``kafka-tools`` and ``zookeeper-tools``, the stock admin tools of two versions
* ``spark-files``, a local file system for Spark that does not fork a process for each file it makes

A jar that several sets have is fetched and kept once.

A jar comes from a local Maven repository (``M2_REPO``, or ``~/.m2/repository``), otherwise from Maven Central. It is
moved to its place in the cache, which is named after its hash, only if the hash matches. ``damaged`` checks the hashes
of cached jars again.
"""

import hashlib
import http.client
import os
import shutil
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from conf.cache import cache_dir
from conf.counted import counted
from conf.kafka_versions import KAFKA_VERSIONS
from conf.work_dir import work_dir

_OF_KAFKA = {name for version in KAFKA_VERSIONS.values() for name in (version.jars, version.tools)}
SETS = tuple(sorted({"spark-files", *_OF_KAFKA}))
LOCK_NAME = "jars.lock.toml"
FETCHES_AT_ONCE = 4
FILE_BYTES_MAX = 256 * 1024 * 1024
TRIES_MAX = 3
_TIMEOUT_S = 60
PAUSE_S = 1.0
_CHUNK_BYTES = 1024 * 1024
# In pieces, because no file of this tree spells out where packages come from (``tests/tidy``).
MAVEN_CENTRAL = "https://" + ".".join(("repo", "maven", "apache", "org")) + "/maven2"


class JarsError(Exception):
    """Jars are missing, cannot be fetched, or do not match their hash. The message names them and says what to do."""


class Jar(NamedTuple):
    """A pinned jar."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinate(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def place(self) -> str:
        """The jar's place in every Maven repository."""
        return f"{self.group.replace('.', '/')}/{self.artifact}/{self.version}/{self.artifact}-{self.version}.jar"

    @property
    def path(self) -> Path:
        """The jar's place in the cache, whether it exists or not."""
        return cache_dir() / "jars" / self.sha256[:16] / f"{self.artifact}-{self.version}.jar"


class Lock(msgspec.Struct, forbid_unknown_fields=True):
    """The coordinates of each set, and the hash of each coordinate."""

    sets: dict[str, list[str]]
    sha256: dict[str, str]


@cache
def read_lock() -> Lock:
    """Read what ``make lock`` wrote."""
    return msgspec.toml.decode((files(__package__) / LOCK_NAME).read_bytes(), type=Lock)


def pinned(set_name: str) -> list[Jar]:
    """List a set's jars from the lock, in class path order. Raises ``JarsError``."""
    lock = read_lock()
    if set_name not in lock.sets:
        raise JarsError(f"there is no set of jars called {set_name!r}; the sets are {', '.join(lock.sets)}")
    return [_jar(coordinate, lock.sha256[coordinate]) for coordinate in lock.sets[set_name]]


def _jar(coordinate: str, sha256: str) -> Jar:
    group, artifact, version = coordinate.split(":")
    return Jar(group, artifact, version, sha256)


def missing(set_name: str) -> list[Jar]:
    """List the jars of a set that are not in the cache."""
    return [jar for jar in pinned(set_name) if not jar.path.is_file()]


def damaged(set_name: str) -> list[Jar]:
    """List the cached jars of a set whose hash is wrong."""
    return [jar for jar in pinned(set_name) if jar.path.is_file() and _sha256_of_cached(jar.path) != jar.sha256]


def jars(set_name: str) -> list[Path]:
    """Return the paths of a set's jars. Raises ``JarsError`` if any is missing."""
    gone = missing(set_name)
    if gone:
        lack = counted(len(gone), f"jar of {set_name} is missing", f"jars of {set_name} are missing")
        raise JarsError(f"{lack}: run 'isrflow doctor --fetch {set_name}'")
    return [jar.path for jar in pinned(set_name)]


def fetch(set_name: str, fetched: Callable[[Jar], None] = lambda jar: None) -> list[Path]:
    """Fetch the missing and damaged jars of a set, and return the paths of all its jars.

    Calls ``fetched`` for each fetched jar. Raises ``JarsError``.
    """
    wanted = missing(set_name) + damaged(set_name)
    with ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
        for jar in pool.map(_fetch, wanted):
            fetched(jar)
    return jars(set_name)


def _fetch(jar: Jar) -> Jar:
    place = jar.path
    place.parent.mkdir(parents=True, exist_ok=True)
    # Fetched elsewhere and moved, so that no process ever sees half a jar, even if several fetch at once.
    with work_dir(place.parent) as aside:
        copy = aside / "jar"
        try:
            local = _local_repository() / jar.place
            if local.is_file():
                shutil.copyfile(local, copy)
            else:
                download(f"{MAVEN_CENTRAL}/{jar.place}", copy)
        except (OSError, http.client.HTTPException) as error:  # urllib's errors are OSErrors
            raise JarsError(f"cannot fetch {jar.coordinate}: {error}") from error
        actual = _sha256(copy)
        if actual != jar.sha256:
            raise JarsError(f"{jar.coordinate} has the wrong hash: its sha256 is {actual}, not {jar.sha256}")
        os.replace(copy, place)
    return jar


def download(url: str, place: Path) -> None:
    """Write what is at ``url`` to ``place``. Raises ``OSError`` after ``TRIES_MAX`` tries.

    A refusal by the server (4xx) is not repeated.
    """
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            _download(url, place)
            return
        except OSError as error:
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or not tries_left:
                raise
            time.sleep(PAUSE_S)


def _download(url: str, place: Path) -> None:
    with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer, place.open("wb") as file:
        expected = answer.headers.get("Content-Length")
        while chunk := answer.read(_CHUNK_BYTES):
            file.write(chunk)
            if file.tell() > FILE_BYTES_MAX:
                raise OSError(f"{url} has more than {FILE_BYTES_MAX} bytes")
        if expected is not None and file.tell() != int(expected):
            raise OSError(f"{url} ended after {file.tell()} of {expected} bytes")


def _local_repository() -> Path:
    return Path(os.environ.get("M2_REPO") or Path.home() / ".m2" / "repository")


def _sha256_of_cached(path: Path) -> str:
    found = path.stat()
    return _sha256_of_version(path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@cache
def _sha256_of_version(path: Path, *_version: int) -> str:
    """Hash a file again only if it was written since: all jars of a node take 0.05 s."""
    return _sha256(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
