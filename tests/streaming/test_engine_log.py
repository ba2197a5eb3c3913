"""What an engine logs about itself and its decisions."""

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace
from structlog.testing import capture_logs

from bus.interface import Decided
from conf.loader import load
from state.decisions import LeaderAndIsr, encode
from state.reason import Reason
from streaming.checkpoint_place import checkpoint_of
from streaming.engine_log import ELECTIONS_SHOWN_MAX, EngineLog
from tests.support.world import World


def lines_about(world: World, log: EngineLog) -> list[Any]:
    bodies = [Decided(one.seq, index, msgspec.json.encode(one)) for index, one in enumerate(world.decisions)]
    with capture_logs() as lines:
        log.committed(world.state.cluster.seq, bodies)
    return lines


def engine_log() -> EngineLog:
    return EngineLog(load(), Path("data/bus.db.checkpoint"), 1)


def test_a_start_is_one_line_with_all_that_differs() -> None:
    settings = load(sets=["shards=4", "broker.session.timeout.ms=5000", "bus=sqlite:x.db", "pages=64"])
    with capture_logs() as lines:
        EngineLog(settings, checkpoint_of(settings), 7)
    (line,) = lines
    assert line["event"] == "started"
    assert line["version"]
    assert (line["bus"], line["checkpoint"]) == (f"sqlite:{Path.cwd()}/x.db", f"{Path.cwd()}/x.db.checkpoint")
    assert line["controller_epoch"] == 7
    assert line["settings"] == {"broker.session.timeout.ms": "5000", "bus": "sqlite:x.db", "shards": "4"}


def test_the_line_of_a_start_shows_no_secret_of_spark() -> None:
    settings = load(
        sets=[
            "spark.hadoop.fs.s3a.secret.key=hidden",
            "spark.hadoop.fs.azure.account.key.isrflow.blob=hidden",
            "spark.authenticate.secret=hidden",
            "spark.executor.memory=2g",
            "spark.executor.extraJavaOptions=-Xss1m -Dssl.keyPassword=hidden",
            "driver.java.options=-Dssl.trustStorePassword=hidden -Xss2m '-Dmy.token=hidden, and hidden' -Da=b",
        ]
    )
    with capture_logs() as lines:
        EngineLog(settings, checkpoint_of(settings), 7)
    said = str(lines)
    assert "hidden" not in said
    assert all(
        text in said
        for text in ("fs.s3a.secret.key", "2g", "-Xss1m", "trustStorePassword=*** -Xss2m", "my.token=***", "-Da=b")
    )


def test_the_first_batch_says_that_the_engine_decides() -> None:
    log = engine_log()
    world = World(1)
    assert "deciding" in [line["event"] for line in lines_about(world, log)]
    assert "deciding" not in [line["event"] for line in lines_about(world, log)]


def test_each_fencing_and_each_election_is_a_line() -> None:
    log = engine_log()
    world = World(1, 2)
    world.create("t", (1, 2))
    lines_about(world, log)
    world.fence(1)
    election, fenced = lines_about(world, log)
    assert election["event"] == "a leader was elected"
    assert {key: election[key] for key in ("partition", "leader", "leader_epoch", "unclean", "reason")} == {
        "partition": "t-0",
        "leader": 2,
        "leader_epoch": 1,
        "unclean": False,
        "reason": "LEADER_FENCED",
    }
    assert (fenced["event"], fenced["broker"], fenced["log_level"]) == ("a broker is fenced", 1, "warning")
    world.fence(2)
    assert [line["event"] for line in lines_about(world, log)] == ["a partition has no leader", "a broker is fenced"]


def test_a_registration_is_no_warning() -> None:
    log = engine_log()
    world = World(1)
    lines_about(world, log)
    world.register(2)
    [line] = lines_about(world, log)
    assert (line["event"], line["broker"], line["log_level"]) == ("a broker registered", 2, "info")


def test_a_change_of_the_isr_alone_is_no_line() -> None:
    log = engine_log()
    world = World(1, 2)
    world.create("t", (1, 2))
    lines_about(world, log)
    world.alter_isr("t", (1,))
    assert lines_about(world, log) == []


def test_the_elections_of_one_batch_have_a_bound() -> None:
    log = engine_log()
    world = World(1, 2)
    world.create("t", *[(1, 2)] * (ELECTIONS_SHOWN_MAX + 5))
    lines_about(world, log)
    world.fence(1)
    events = [line["event"] for line in lines_about(world, log)]
    assert events.count("a leader was elected") == ELECTIONS_SHOWN_MAX
    assert events[-1] == "more elections"


def test_unclean_elections_are_lines_beyond_the_bound() -> None:
    log = engine_log()
    world = World(1, 2)
    world.create("t", *[(1,)] * (ELECTIONS_SHOWN_MAX + 5))
    elected = [one for one in world.decisions if isinstance(one, LeaderAndIsr)]
    unclean = [replace(one, reason=Reason.UNCLEAN_ELECTION, unclean=True) for one in elected]
    with capture_logs() as lines:
        log.committed(9, [Decided(9, index, encode(one)) for index, one in enumerate(unclean)])
    assert [line["event"] for line in lines].count("a leader was elected") == len(unclean)


def test_an_election_that_passed_a_replica_over_is_a_line_for_any_reason() -> None:
    log = engine_log()
    world = World(1, 2)
    world.create("t", (1, 2))
    (moved,) = [one for one in world.decisions if isinstance(one, LeaderAndIsr)]
    moved = replace(moved, reason=Reason.REASSIGNMENT)
    chosen = replace(moved, passed_over={"2": "BROKER_FENCED"})
    with capture_logs() as lines:
        log.committed(9, [Decided(9, index, encode(one)) for index, one in enumerate((moved, chosen))])
    assert [line["event"] for line in lines] == ["deciding", "a leader was elected"]
