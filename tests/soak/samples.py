"""Resources of a running engine, sampled from outside: descriptors, threads, memory, files, and the scrape time."""

import contextlib
import subprocess
import time
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
import psutil

SCRAPE_TIMEOUT_S = 30.0
HEAP_TIMEOUT_S = 60.0
MIB = 2**20
# Threads of the JVM that come in bursts, and are not counted. After a garbage collection Spark removes unused blocks
# in two pools of up to 100 threads each, which last for a minute. A thread that watches a Python task outlives the task
# by some seconds, so there are more of these when batches are quicker.
NOT_COUNTED = ("block-manager-", "Worker Monitor")


class Sample(msgspec.Struct, frozen=True):
    """An engine's resources at one moment; memory is resident, and shared pages count for each process.

    ``live_heap_mib`` is what the JVM's heap holds after a full collection. It is 0 if the sampler does not collect.
    """

    at_s: float
    batches: int
    driver_fds: int
    jvm_fds: int
    worker_fds: int
    threads: int
    driver_mib: float
    jvm_mib: float
    worker_mib: float
    checkpoint_mib: float
    checkpoint_files: int
    bus_mib: float
    wal_mib: float
    scrape_ms: float
    scrape_bytes: int
    live_heap_mib: float


class Sampler:
    """A sampler of one engine: its process, its folder (bus and checkpoint), and its metrics endpoint.

    With ``collects`` each sample makes the JVM collect its whole heap, which stops it for a moment. Without it a heap
    that is touched for the first time cannot be told from one that leaks.
    """

    def __init__(self, pid: int, directory: Path, url: str, *, collects: bool) -> None:
        self._process = psutil.Process(pid)
        self._directory = directory
        self._url = url
        self._collects = collects
        self._started_s = time.monotonic()

    def take(self) -> Sample:
        """Take one sample; raise ``psutil.NoSuchProcess`` if the engine has ended."""
        started_s = time.monotonic()
        with urllib.request.urlopen(self._url, timeout=SCRAPE_TIMEOUT_S) as answer:
            scraped = answer.read()
        scrape_ms = (time.monotonic() - started_s) * 1_000
        parts = self._parts()
        live_heap_mib = _live_heap_mib(parts["jvm"]) if self._collects else 0.0
        sizes = [size for file in _files(self._directory / "checkpoint") if (size := _size(file)) is not None]
        return Sample(
            at_s=started_s - self._started_s,
            batches=_counter(scraped, b"isrflow_batch_duration_seconds_count"),
            driver_fds=_fds(parts["driver"]),
            jvm_fds=_fds(parts["jvm"]),
            worker_fds=_fds(parts["worker"]),
            threads=_threads(parts),
            driver_mib=_resident_mib(parts["driver"]),
            jvm_mib=_resident_mib(parts["jvm"]),
            worker_mib=_resident_mib(parts["worker"]),
            checkpoint_mib=sum(sizes) / MIB,
            checkpoint_files=len(sizes),
            bus_mib=(_size(self._directory / "bus.db") or 0) / MIB,
            wal_mib=(_size(self._directory / "bus.db-wal") or 0) / MIB,
            scrape_ms=scrape_ms,
            scrape_bytes=len(scraped),
            live_heap_mib=live_heap_mib,
        )

    def threads(self) -> int:
        """Count the threads of the engine's processes, without those of ``NOT_COUNTED``."""
        return _threads(self._parts())

    def _parts(self) -> dict[str, list[psutil.Process]]:
        """Sort the engine's processes: the driver, its JVM, and the JVM's Python workers."""
        parts: dict[str, list[psutil.Process]] = {"driver": [self._process], "jvm": [], "worker": []}
        for child in self._process.children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                parts["jvm" if child.name() == "java" else "worker"].append(child)
        return parts


def _fds(processes: list[psutil.Process]) -> int:
    return sum(int(_of(process, "num_fds")) for process in processes)


def _threads(parts: Mapping[str, Iterable[psutil.Process]]) -> int:
    processes = [process for some in parts.values() for process in some]
    return sum(not name.startswith(NOT_COUNTED) for process in processes for name in _thread_names(process.pid))


def _thread_names(pid: int) -> Iterator[str]:
    """Yield the name of each thread, cut to 15 characters."""
    for name in Path(f"/proc/{pid}/task").glob("*/comm"):
        # A thread may end after it is listed.
        with contextlib.suppress(OSError):
            yield name.read_text()


def _resident_mib(processes: list[psutil.Process]) -> float:
    total = 0.0
    for process in processes:
        # Spark may end an idle worker after it is listed.
        with contextlib.suppress(psutil.NoSuchProcess):
            total += process.memory_info().rss / MIB
    return total


def _live_heap_mib(jvms: list[psutil.Process]) -> float:
    """Have each JVM collect its heap, and return what is left."""
    total = 0.0
    for jvm in jvms:
        # The histogram counts live objects, so the JVM collects first. Its last line is: Total, objects, bytes.
        command = [str(Path(jvm.exe()).with_name("jcmd")), str(jvm.pid), "GC.class_histogram"]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=HEAP_TIMEOUT_S).stdout
        total += int(told.split()[-1]) / MIB
    return total


def _of(process: psutil.Process, what: str) -> float:
    try:
        return float(getattr(process, what)())
    except psutil.NoSuchProcess:
        return 0.0


def _files(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file():
                yield path


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None


def _counter(scraped: bytes, name: bytes) -> int:
    for line in scraped.splitlines():
        if line.startswith(name + b" "):
            return int(float(line.split()[1]))
    return 0
