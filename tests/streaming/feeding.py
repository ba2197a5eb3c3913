"""Give a job, perhaps one that will die, a recorded world's events, and compare its decisions with the rules."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from bus.image import view_of_image
from bus.interface import Bus
from bus.kafka.bus import KafkaBus
from tests.support.engine import Engine, by_rules, decisions_of
from tests.support.random_logs import seeded

ROOT = Path(__file__).parents[2]


def crashing(point: str, armed: Path) -> tuple[str, ...]:
    """Return the command of a job that dies at ``point`` of a batch once the file ``armed`` exists.

    It finds the tests by PYTHONPATH, because another test may have set PYTHONSAFEPATH for the children of this process.
    """
    return ("env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "tests.streaming.crashing_job", point, str(armed))


def crash(engine: Engine, bus: Bus, armed: Path, events: Sequence[bytes]) -> None:
    """Let a crashing job die in the batch of half of ``events``, or before it. The others wait for its successor."""
    half = len(events) // 2
    armed.touch()
    bus.publish_own(events[:half])
    code = engine.wait()
    assert code == -signal.SIGKILL, f"the job ended by itself: {engine.log.read_text()[-4000:]}"
    armed.unlink()
    bus.publish_own(events[half:])


def random_events(seed: int, count: int) -> list[bytes]:
    """Return the events of a random log."""
    return [raw for _, raw in seeded(seed=seed, count=count)]


def assert_as_by_rules(bus: KafkaBus) -> None:
    """Compare with the rules alone. The engine may decide a tick meanwhile."""
    view = view_of_image(bus.image())
    while (expected := by_rules(bus).view())["seq"] != view["seq"]:
        view = view_of_image(bus.image())
    assert view == expected
    assert len(decisions := decisions_of(bus)) > 100
    assert by_rules(bus).decisions[: len(decisions)] == decisions
