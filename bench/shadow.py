"""Measure how fast the metadata log of an observed cluster is read, audited and explained, and what memory it takes.

    make bench-shadow ARGS="[--partitions N,...] [--brokers N]"

The commands run as users start them, each in a process of its own, so that their memory can be told. The two halves of
``shadow read`` are also measured apart, in this process: from files to events, and from events to decisions.
"""

import argparse
import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from bench.load import Took
from bench.observed_log import written
from bench.report import Figure, measured
from brokers.shadow.events import encoded, events_of
from brokers.shadow.files import read_directory
from brokers.shadow.operations import Operations
from bus.embedded import EmbeddedBus
from bus.interface import Entry
from conf.garbage import without_collections
from conf.settings import Settings
from streaming.in_process import InProcessEngine

PARTITIONS, BROKERS = "100000", 10
CLUSTER = "observed"
# ru_maxrss is in KiB.
_KIB_IN_MIB = 1024


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="shadow", description="Read, audit and explain an observed log.")
    parser.add_argument("--partitions", default=PARTITIONS, help=f"sizes, with commas (default {PARTITIONS})")
    parser.add_argument("--brokers", type=int, default=BROKERS, help=f"how many brokers (default {BROKERS})")
    options = parser.parse_args(given)
    sizes = [int(size) for size in options.partitions.split(",")]
    measured("shadow", given, lambda: [one for size in sizes for one in measure(size, options.brokers)])


def measure(partitions: int, brokers: int) -> Iterator[Figure]:
    """Measure all steps on a log of this size. ``changes`` are operations, or partitions where there are more."""
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name:
        folder = Path(name)
        operations, changed = _written(folder / "log", partitions, brokers)
        rows = partitions + changed
        bus = str(folder / "read.db")
        steps = {
            "shadow read": (["shadow", "read", str(folder / "log"), "--bus", bus, "--format", "json"], rows),
            "tell every operation": (["events", "--format", "text", "--bus", bus], operations),
            "explain one partition": (["partitions", "explain", "topic-0-0", "--bus", bus], 1),
            "whatif --kill": (["whatif", "--kill", "1", "--format", "json", "--bus", bus], partitions),
        }
        for step, (words, changes) in steps.items():
            yield Figure("shadow", partitions, step, [_command(words, changes)], brokers)
        for step, took in _halves(folder, rows):
            yield Figure("shadow", partitions, step, [took], brokers)


def _written(folder: Path, partitions: int, brokers: int) -> tuple[int, int]:
    """Write a log, and return how many operations and changes of partitions it has.

    Another process does that, because a command counts as at least as large as the process that started it.
    """
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(written, folder, partitions, brokers).result()


def _command(words: Sequence[str], changes: int) -> Took:
    began_s = time.monotonic()
    process = subprocess.Popen([sys.executable, "-P", "-m", "cli", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall_s = time.monotonic() - began_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"isrflow {' '.join(words)} ended with {process.returncode}")
    cpu_s, peak_mib = used.ru_utime + used.ru_stime, used.ru_maxrss // _KIB_IN_MIB
    return Took(wall_s=wall_s, cpu_s=cpu_s, changes=changes, peak_mib=peak_mib)


def _halves(folder: Path, rows: int) -> Iterator[tuple[str, Took]]:
    with without_collections(), contextlib.closing(EmbeddedBus(folder / "halves.db")) as bus:
        clock = _Clock(rows)
        cut = Operations()
        events = [
            event
            for one in read_directory(folder / "log")
            for operation in cut.take(one)
            for event in events_of(operation, CLUSTER)
        ]
        events += [event for operation in cut.end() for event in events_of(operation, CLUSTER)]
        bus.load([Entry(seq, encoded(event), event.time_ms, False) for seq, event in enumerate(events, start=1)])
        yield "of it: read into events", clock.took()
        InProcessEngine(bus, Settings()).decide()
        yield "of it: adopt and audit", clock.took()


class _Clock:
    """The time of this process since the last look."""

    def __init__(self, changes: int) -> None:
        self._changes = changes
        self._now = time.monotonic(), time.process_time()

    def took(self) -> Took:
        former, self._now = self._now, (time.monotonic(), time.process_time())
        wall_s, cpu_s = (now - before for now, before in zip(self._now, former, strict=True))
        return Took(wall_s=wall_s, cpu_s=cpu_s, changes=self._changes)
