"""The checks of 'isrflow doctor': versions, Java, the bus, clocks, and what this user may write."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from bus.interface import Bus, BusError, NoBusError
from bus.open_bus import files_name, open_bus
from cli.committed import NO_READER, OLD_AFTER_S, Committed, blocked, read_committed, why_old
from cli.errors import Unreachable
from conf.java import JavaError, java_home
from conf.place_uri import local_path
from conf.settings import Settings
from isrflow.contract import SQLITE
from isrflow.masking import masked
from state.stored.codec import CodecError

FREE_BYTES_MIN = 100 * 1024 * 1024
PACKAGES = ("isrflow", "pyspark", "pyarrow", "confluent-kafka", "kafka-python", "click")


class Finding(NamedTuple):
    """The result of one check. It is wrong if it is ``needed`` and not ``there``."""

    name: str
    there: bool
    needed: bool
    text: str

    @property
    def is_wrong(self) -> bool:
        """Whether this has to be fixed."""
        return self.needed and not self.there


def versions() -> Iterator[Finding]:
    """Find the versions of Python and of the packages that matter."""
    found = [f"Python {'.'.join(map(str, sys.version_info[:3]))}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"no {package}")
    yield Finding("versions", True, False, ", ".join(found))


def java() -> Iterator[Finding]:
    """Find the Java that Spark would use, and its version."""
    try:
        home = java_home()
    except JavaError as error:
        yield Finding("java", False, True, str(error))
        return
    yield Finding("java", True, True, f"{home}{_java_version(home)}")


def _java_version(home: Path) -> str:
    try:
        lines = (home / "release").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    found = [line.partition("=")[2].strip('"') for line in lines if line.startswith("JAVA_VERSION=")]
    return f", version {found[0]}" if found else ""


def bus(url: str, *, needed: bool) -> Iterator[Finding]:
    """Check whether the bus can be read, whether an engine decides, and whether its clock is right.

    A bus that is missing is wrong only if it is ``needed``, because the first engine makes it.
    """
    try:
        opened = open_bus(url, read_only=True)
    except NoBusError as error:
        yield Finding("bus", False, needed, masked(str(error)))
    except BusError as error:
        yield Finding("bus", False, True, masked(str(error)))
    else:
        try:
            yield Finding("bus", True, False, f"{masked(url)}{_number(opened)}")
            found = read_committed(opened, url.removeprefix(SQLITE))
        except Unreachable as error:
            yield Finding("engine", False, False, error.message)
        except (BusError, CodecError) as error:
            yield Finding("engine", False, True, masked(str(error)))
        else:
            yield from _engine(opened, found)
        finally:
            opened.close()


def _number(opened: Bus) -> str:
    """Return the number by which ZooKeeper knows the bus. A bus on Kafka has none until an engine claims it."""
    number = opened.bus_id()
    return f", number {number}" if number else ""


def _engine(opened: Bus, found: Committed) -> Iterator[Finding]:
    age_s, skew_ms = found.age_s, found.cluster.clock_skew_ms or 0
    is_recent = age_s <= OLD_AFTER_S
    what = "the last commit" if found.cluster.shadow is None else "what was observed"
    is_unheard = why_old(opened, found.cluster, found.waiting_ms) == NO_READER
    name, command = ("shadow", "isrflow shadow run") if is_unheard else ("engine", "isrflow run")
    when = f"{what} is {age_s:.1f} s old"
    yield Finding(name, is_recent, False, when if is_recent else f"{when}: start it with '{command}'")
    if not is_recent and (why := blocked(opened)):
        yield Finding("transaction", False, True, why)
    is_right = abs(skew_ms) <= OLD_AFTER_S * 1000
    text = f"the engine's clock is {skew_ms} ms ahead of the bus's"
    yield Finding("clock", is_right, True, text if is_right else f"{text}: set the clocks of both machines")


def places_of_engine(settings: Settings) -> Iterator[Finding]:
    """Check whether this user may write the checkpoint and the file of the bus, and whether there is room."""
    places = {}
    checkpoint = settings.checkpoint_dir or f"{files_name(settings.bus)}.checkpoint"
    if (path := local_path(checkpoint)) is not None:
        places["checkpoint"] = path
    else:
        yield Finding("checkpoint", False, False, f"{masked(checkpoint)} was not checked: only Spark reaches it")
    if settings.bus.startswith(SQLITE):
        places["bus file"] = Path(settings.bus.removeprefix(SQLITE))
    yield from writable(places)


def writable(places: Mapping[str, Path]) -> Iterator[Finding]:
    """Check whether this user may write each of the ``places``, and whether there is room."""
    for name, place in places.items():
        held = _nearest(place)
        # The bus itself is a file, but everything above it must be a directory.
        if not held.is_dir() and (name != "bus file" or held != place.absolute()):
            yield Finding(name, False, True, f"{held} is a file, but must be a directory")
            continue
        if not os.access(held, os.W_OK):
            yield Finding(name, False, True, f"{held} cannot be written by this user")
            continue
        free = shutil.disk_usage(held).free
        text = f"{held} can be written, {free // 2**20} MiB are free"
        yield Finding(name, free >= FREE_BYTES_MIN, True, text)


def _nearest(place: Path) -> Path:
    """Return ``place``, or the nearest folder above it that this user sees."""
    place = place.absolute()
    try:
        is_there = place.exists()
    except PermissionError:
        is_there = False
    return place if is_there else _nearest(place.parent)
