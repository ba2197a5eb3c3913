"""Give a job a recorded world's events, also one that is to die, and compare what it wrote with the rules."""

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from bus.image import view_of_image
from bus.interface import Bus
from bus.kafka.bus import KafkaBus
from isrflow.kafka.seqs import SLOTS
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


def control_events(seed: int, count: int) -> list[bytes]:
    """Return the control events of a random log, with broker epochs converted to this bus's seqs."""
    log = []
    for _, raw in seeded(seed=seed, count=count):
        try:
            event: Any = msgspec.json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            event = None
        if isinstance(event, dict) and isinstance(event.get("broker_epoch"), int):
            raw = msgspec.json.encode(event | {"broker_epoch": event["broker_epoch"] * SLOTS})
        if not (isinstance(event, dict) and event.get("kind") == "log_end_offset"):
            log.append(raw)
    return log


def assert_as_by_rules(bus: KafkaBus) -> None:
    """Compare with the rules alone, except for decisions about log ends, because the control log has no log ends."""
    expected = by_rules(bus)
    written = decisions_of(bus)
    assert [place[:2] for place in written] == sorted({place[:2] for place in written})
    assert [entry for entry in written if b'"high_watermark","' not in entry[2][:30]] == expected.decisions
    assert len(expected.decisions) > 100
    view, by_log = view_of_image(bus.image()), expected.view()
    for partition in (*view["partitions"], *by_log["partitions"]):
        partition.pop("high_watermark")
    assert view["partitions"] == by_log["partitions"]
    assert view["brokers"] == by_log["brokers"]
