"""Run a job that dies at a crash point, and feed it until then."""

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bus.interface import Bus
from tests.support.engine import AWAITED, Engine

CRASH_TIMEOUT_S = 180.0
ROOT = Path(__file__).parents[2]


def crashing(point: str, batch: int) -> tuple[str, ...]:
    """Return the command of a job that dies at ``point`` of its batch number ``batch``.

    It finds the tests by PYTHONPATH, because another test may have set PYTHONSAFEPATH for the children of this process.
    """
    return ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.streaming.crashing_job", point, str(batch))


def feed_until_dead(engine: Engine, bus: Bus, log: Sequence[bytes], sent: int) -> int:
    """Publish a few events of ``log`` every 50 ms until the engine has died; return how many were published."""
    deadline = time.monotonic() + CRASH_TIMEOUT_S
    while engine.process.poll() is None:
        assert time.monotonic() < deadline, f"the job did not reach its crash point: {engine.log.read_text()[-2000:]}"
        bus.publish_own(log[sent : sent + 5] or [AWAITED])
        sent += 5
        time.sleep(0.05)
    assert engine.process.returncode == -signal.SIGKILL, f"the job ended by itself: {engine.log.read_text()[-4000:]}"
    return sent
