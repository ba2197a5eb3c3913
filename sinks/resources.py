"""Measure what the engine uses of its machine: the memory of its processes, and the size of the bus."""

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import psutil

from bus.interface import Bus
from isrflow.sqlite.bus_file import BusFile
from isrflow.sqlite.file_identity import SHARED, WAL, file_beside

# Values up to this age are served again, because a measurement walks all processes of the machine.
AGE_S_MAX = 2.0
PROCESSES = ("engine", "jvm", "workers")


class Resources(msgspec.Struct, frozen=True):
    """The measured values. ``workers`` are all other processes that the engine started."""

    # Resident memory, by process.
    memory_bytes: Mapping[str, int] = {}
    # None if the bus is not a file.
    bus_bytes: int | None = None


class ResourceMeter:
    """The meter of this process with its children, and of the files of the bus."""

    def __init__(self, bus_files: Sequence[Path] = ()) -> None:
        self._bus_files = tuple(bus_files)
        self._held = Resources()
        self._held_until_s = 0.0

    def read(self) -> Resources:
        """Measure, or return values that were measured a moment ago."""
        if time.monotonic() >= self._held_until_s:
            self._held = self._measured()
            self._held_until_s = time.monotonic() + AGE_S_MAX
        return self._held

    def _measured(self) -> Resources:
        memory = dict.fromkeys(PROCESSES, 0)
        me = psutil.Process()
        for process in (me, *me.children(recursive=True)):
            # The process may end at any moment.
            with contextlib.suppress(psutil.Error), process.oneshot():
                name = "engine" if process == me else "jvm" if process.name() == "java" else "workers"
                memory[name] += process.memory_info().rss
        return Resources(memory, self._bus_bytes())

    def _bus_bytes(self) -> int | None:
        if not self._bus_files:
            return None
        total = 0
        for file in self._bus_files:
            with contextlib.suppress(OSError):
                total += os.stat(file).st_size
        return total


def files_of(bus: Bus) -> tuple[Path, ...]:
    """Return the files that hold a bus; none if it is on Kafka."""
    if not isinstance(bus, BusFile):
        return ()
    return tuple(file_beside(bus.path, ending) for ending in ("", WAL, SHARED))
