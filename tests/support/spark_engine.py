"""The engine as users run it: the Spark job, in processes of its own."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from isrflow.bus.embedded import EmbeddedBus, now_ms

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0


class SparkEngine:
    """Decide what comes on a bus, as ``RulesEngine`` does; its output goes to ``engine.log`` beside the bus."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, path: Path, **settings: object) -> None:
        """Start the job, and wait until it has decided its first batch."""
        named = {name.replace("_", "."): str(value).lower() for name, value in settings.items()}
        named |= {"bus": f"sqlite:{path}", "checkpoint.dir": str(path.parent / "checkpoint"), "metrics.port": "-1"}
        sets = [part for name, value in named.items() for part in ("--set", f"{name}={value}")]
        with (path.parent / "engine.log").open("ab") as output:
            self._process = subprocess.Popen(
                [Path(sys.executable).with_name("isrflow"), "run", *sets],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        bus = EmbeddedBus(path)
        try:
            self._wait_until_decided(bus, bus.publish([msgspec.json.encode({"kind": "tick", "time_ms": now_ms()})]))
        finally:
            bus.close()

    def _wait_until_decided(self, bus: EmbeddedBus, seq: int) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_TIMEOUT_S
        while bus.decided_seq() < seq:
            assert self._process.poll() is None, "the engine ended: see engine.log"
            assert time.monotonic() < deadline, "the engine decided nothing in time: see engine.log"
            time.sleep(0.1)

    def stop(self) -> None:
        """Stop the job, its JVM and workers."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOP_TIMEOUT_S)
