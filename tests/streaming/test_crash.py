"""A kill between any two writes of a micro-batch neither repeats nor loses a decision."""

import json
from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from tests.streaming.feeding import crashing, feed_until_dead
from tests.support.engine import Engine, by_rules, decided, decisions_of
from tests.support.random_logs import seeded

pytestmark = pytest.mark.spark

POINTS = ("offsets", "state", "output", "commit", "next")
BATCH = 3


def assert_died_at(point: str, checkpoint: Path, bus: EmbeddedBus) -> None:
    """Check that the killed batch wrote what comes before ``point``, and nothing after it."""
    begun = max(int(path.name) for path in (checkpoint / "offsets").glob("[0-9]*"))
    ended = max(int(path.name) for path in (checkpoint / "commits").glob("[0-9]*"))
    through = json.loads((checkpoint / "offsets" / str(begun)).read_text().splitlines()[-1])["seq"]
    if point == "next":
        # The next batch may have begun, because the source hears of a commit while that batch is being planned.
        assert begun - ended in (0, 1)
    else:
        assert begun - ended == 1, point
        assert (bus.decided_seq() == through) == (point == "commit"), point


def test_a_job_killed_at_each_commit_point_leaves_one_whole_decision_log(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    log = [raw for _, raw in seeded(seed=11, count=6_000)]
    sent = 0
    for point in POINTS:
        engine = Engine(tmp_path, command=crashing(point, BATCH))
        try:
            sent = feed_until_dead(engine, bus, log, sent)
        finally:
            engine.kill()
        assert_died_at(point, tmp_path / "checkpoint", bus)
    engine = Engine(tmp_path)
    try:
        decided(bus, bus.publish_own(log[sent : sent + 200]), engine=engine)
        assert engine.stop() == 0
    finally:
        engine.kill()
    # Each engine continued from its predecessor's checkpoint.
    assert "moved the checkpoint aside" not in engine.log.read_text()
    expected = by_rules(bus)
    assert decisions_of(bus) == expected.decisions
    assert len(expected.decisions) > 300
    assert view_of_image(bus.image()) == expected.view()
    bus.close()
