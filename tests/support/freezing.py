"""Freeze processes that share a bus in a file, but never one that writes, because the file would stay locked."""

import contextlib
import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil

from tests.support.waiting import TIMEOUT_S, wait_until


def freeze(bus_path: Path, processes: Callable[[], Iterable[psutil.Process]]) -> None:
    """Stop processes, and wait until they stand still, while none of them writes to the bus. SIGCONT continues them."""
    with contextlib.closing(sqlite3.connect(bus_path, timeout=TIMEOUT_S, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        stand_still(processes)
        connection.execute("ROLLBACK")


def stand_still(processes: Callable[[], Iterable[psutil.Process]]) -> None:
    """Stop processes, also those that they start until they are stopped, and wait until they stand still."""
    stopped: set[psutil.Process] = set()
    while stopping := set(processes()) - stopped:
        for one in stopping:
            # Spark ends idle workers at any time.
            with contextlib.suppress(psutil.NoSuchProcess):
                one.suspend()
        wait_until(lambda those=stopping: all(map(_stands_still, those)), "the processes to stand still")
        stopped |= stopping


def freeze_process(bus_path: Path, pid: int | None) -> None:
    """Stop one process, as ``freeze`` does. It must run."""
    assert pid is not None
    process = psutil.Process(pid)
    freeze(bus_path, lambda: [process])


def _stands_still(process: psutil.Process) -> bool:
    try:
        return process.status() in {psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE}
    except psutil.NoSuchProcess:
        return True
