"""Start and end the server that forks Spark's Python processes."""

import os
import selectors
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import structlog

from conf.python import PYTHON
from streaming.forking import launcher
from streaming.forking.server import READY

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 10.0
# What the processes of a query import: Spark's own modules, and ours that travel to them by name.
MODULES = (
    "pandas",
    "pyspark.daemon",
    "pyspark.worker",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "pyspark.sql.streaming.stateful_processor_util",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.plan_data_source_read",
    "streaming.shard",
)
logger = structlog.get_logger("isrflow.job")


class ForkServer:
    """A server in ``directory``; ``python`` is the program that Spark runs instead of Python.

    The server imports ``MODULES``, and the modules named in ``others``.

    The program works at once. Until the server is ready, or if it has ended, the program starts Python processes cold.
    """

    def __init__(self, directory: Path, others: Sequence[str] = ()) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="python-", dir=directory))
        self.python = self._directory / "python"
        command = [sys.executable, "-IS", launcher.__file__, sys.executable, str(self._directory)]
        _write(self.python, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        self.python.chmod(0o700)
        self._process = subprocess.Popen(
            [*PYTHON, "-m", "streaming.forking.server", *MODULES, *others],
            cwd=self._directory,
            # Spark gives each of its workers this seed.
            env=os.environ | {"PYTHONHASHSEED": "0"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._is_ready = False

    @property
    def is_usable(self) -> bool:
        return self._process.poll() is None and self.python.exists()

    def wait_ready(self) -> None:
        """Wait until the server forks. If it cannot start, log that; Spark's Pythons then start cold."""
        if self._is_ready:
            # The server says so once, but each session of this process waits for it.
            return
        assert self._process.stdout is not None
        deadline_s, told = time.monotonic() + START_TIMEOUT_S, b""
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while told != READY and selector.select(max(0.0, deadline_s - time.monotonic())):
                some = os.read(self._process.stdout.fileno(), len(READY))
                if not some:
                    break
                told += some
        self._is_ready = told == READY
        if not self._is_ready:
            logger.warning("the process that forks Spark's Python processes did not start; they start more slowly")

    def stop(self) -> None:
        """End the server and remove its files; processes that it forked go on. Raises ``subprocess.TimeoutExpired``."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(STOP_TIMEOUT_S)
        shutil.rmtree(self._directory, ignore_errors=True)


def _write(path: Path, text: str) -> None:
    """Write a file. Raises ``OSError``, which names the file also if the disk is full."""
    try:
        path.write_text(text)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
