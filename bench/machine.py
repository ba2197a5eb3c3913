"""The machine that measures: its facts, its load, a fixed piece of work to compare with, and what processes use."""

import contextlib
import os
import platform
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import psutil

from bench.load import Took

REFERENCE_RUNS = 5
_LOOPS = 2_000_000
_ROWS = 50_000


class Machine(msgspec.Struct, frozen=True):
    """What a figure depends on besides the code."""

    processor: str
    cores: int
    memory_gib: int
    system: str
    python: str
    # The one-minute average of runnable processes when the run began.
    load: float
    # Median wall and CPU seconds of the reference loop.
    reference_wall_s: float
    reference_cpu_s: float


def machine() -> Machine:
    """Describe the machine, and run the reference loop on it."""
    load = os.getloadavg()[0]
    runs = [_reference() for _ in range(REFERENCE_RUNS)]
    wall_s, cpu_s = (statistics.median(column) for column in zip(*runs, strict=True))
    system = f"{platform.system()} {platform.release()}"
    return Machine(
        _processor(), os.cpu_count() or 0, _memory_gib(), system, platform.python_version(), load, wall_s, cpu_s
    )


def facts() -> str:
    """Describe the machine in a few words."""
    return f"{_processor()}, {os.cpu_count()} cores, {_memory_gib()} GiB"


def _memory_gib() -> int:
    return round(int(psutil.virtual_memory().total) / 2**30)


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor()


def _reference() -> tuple[float, float]:
    """Do the kinds of work that an engine does most: dictionaries and tuples in Python, JSON, and rows into SQLite."""
    wall_s, cpu_s = time.monotonic(), time.process_time()
    held: dict[int, tuple[int, int]] = {}
    for number in range(_LOOPS):
        held[number % 1_000] = (number, number * 31 % 997)
    rows = [(number, msgspec.json.encode({"number": number, "held": held[number % 1_000]})) for number in range(_ROWS)]
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as folder:
        connection = sqlite3.connect(Path(folder) / "reference.db")
        with connection:
            connection.execute("CREATE TABLE rows (number INTEGER PRIMARY KEY, body BLOB)")
            connection.executemany("INSERT INTO rows VALUES (?, ?)", rows)
        connection.close()
    return time.monotonic() - wall_s, time.process_time() - cpu_s


class Meter:
    """The CPU seconds that processes and their children use from now on, or have used since their start.

    The time of children that end before ``spent_s`` is lost.
    """

    def __init__(self, pids: Sequence[int], *, from_start: bool = False) -> None:
        self._pids = pids
        self._before = {} if from_start else self._used_s()

    def _used_s(self) -> dict[psutil.Process, float]:
        used: dict[psutil.Process, float] = {}
        for pid in self._pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                first = psutil.Process(pid)
                for one in (first, *first.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        used[one] = sum(one.cpu_times()[:2])
        return used

    def spent_s(self) -> float:
        return sum(used - self._before.get(one, 0.0) for one, used in self._used_s().items())


def idle(pids: Sequence[int], seconds: float) -> Took:
    """Watch processes for a while and leave them alone."""
    began_s, meter = time.monotonic(), Meter(pids)
    time.sleep(seconds)
    return Took(wall_s=time.monotonic() - began_s, cpu_s=meter.spent_s(), changes=0)
