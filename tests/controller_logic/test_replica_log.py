"""What the log of a crashed broker proves, and which reports are refused."""

from typing import Any

import pytest

from state.decisions import Answer, LeaderAndIsr, Rejected
from state.partition import ReportedLog
from tests.support.world import World

DIRS = ("/d",)
# Most fields of a report; the broker's epoch is found.
LOG = {"topic": "t", "partition": 0, "last_written_epoch": 0, "log_end_offset": 10, "high_watermark": 0}


def cluster(*, level: int = 2, **config: str) -> World:
    """Make a cluster with eligible replicas, and a partition on 1, 2 and 3 with ten committed records."""
    world = World(eligible_leader_replicas_version="1")
    world.publish("controller_started", controller_id="c", controller_epoch=1, level=2)
    if level > 1:
        world.publish("raise_level", level=level)
    for broker in (1, 2, 3):
        world.join(broker, log_dirs=DIRS)
    world.create("t", (1, 2, 3), **({"min.insync.replicas": "2"} | config))
    world.offsets("t", b1=10, b2=10, b3=10)
    world.tick(100)
    assert world.partition("t").high_watermark == 10
    return world


def report(world: World, broker: int, **fields: Any) -> None:
    if "broker_epoch" not in fields:
        fields["broker_epoch"] = world.broker(broker).broker_epoch
    world.publish("replica_log", **(LOG | {"broker": broker} | fields))


def crashed(world: World, broker: int, **fields: Any) -> None:
    """Register the next process of a broker that was killed. It has not asked to serve yet."""
    world.register(broker, incarnation=f"next of {world.broker(broker).broker_epoch}", **({"log_dirs": DIRS} | fields))


def all_down(world: World) -> None:
    """Fence 3, 2 and 1, so that 1 and 2 are eligible."""
    for broker in (3, 2, 1):
        world.beat(broker, fence=True)
    assert (world.partition("t").isr, world.partition("t").elr) == ((), (1, 2))


def test_a_crashed_replica_whose_log_is_complete_is_eligible_again_and_leads_when_its_broker_serves() -> None:
    world = cluster()
    all_down(world)
    crashed(world, 2)
    assert (world.partition("t").elr, world.partition("t").former_members) == ((1,), (2,))
    report(world, 2)
    assert world.leader_decision == "LOG_COMPLETE to "
    assert (world.partition("t").elr, world.partition("t").former_members) == ((1, 2), ())
    world.beat(2)
    assert world.leader_decision == "ELIGIBLE_ELECTION to 2"
    assert (world.partition("t").leader, world.partition("t").isr, world.partition("t").elr) == (2, (2,), (1,))


def test_it_leads_at_once_if_its_broker_serves_already() -> None:
    world = cluster()
    all_down(world)
    crashed(world, 2)
    world.beat(2)
    assert world.partition("t").leader == -1
    report(world, 2)
    assert world.leader_decision == "ELIGIBLE_ELECTION to 2"
    assert world.one(LeaderAndIsr).passed_over == {1: "BROKER_FENCED"}
    assert world.partition("t").elr == (1,)


def test_it_is_eligible_again_beside_a_leader() -> None:
    world = cluster()
    world.beat(3, fence=True)
    world.beat(2, fence=True)
    crashed(world, 2)
    assert (world.partition("t").isr, world.partition("t").elr) == ((1,), ())
    report(world, 2)
    assert (world.partition("t").isr, world.partition("t").elr) == ((1,), (2,))
    assert world.leader_decision == "LOG_COMPLETE to 1"


@pytest.mark.parametrize(
    "fields",
    [
        {"log_end_offset": 9},
        # Its broker knows of records that were committed without the engine.
        {"log_end_offset": 20, "high_watermark": 11},
    ],
)
def test_a_log_that_is_not_proven_complete_stays_out(fields: dict[str, int]) -> None:
    world = cluster()
    all_down(world)
    crashed(world, 2)
    report(world, 2, **fields)
    assert world.decisions == []
    assert (world.partition("t").elr, world.partition("t").former_members) == ((1,), (2,))


def test_only_a_replica_that_was_in_sync_or_eligible_can_prove_its_log() -> None:
    """Replica 3 left an ISR that was large enough to go on without it. Its log may end with other records."""
    world = cluster()
    all_down(world)
    crashed(world, 3)
    report(world, 3, log_end_offset=50)
    assert world.decisions == []
    assert (world.partition("t").elr, world.partition("t").former_members) == ((1, 2), ())


def test_once_the_isr_commits_without_it_nothing_is_proven() -> None:
    world = cluster()
    world.beat(3, fence=True)
    world.beat(2, fence=True)
    crashed(world, 2)
    assert world.partition("t").former_members == (2,)
    world.beat(3)
    world.alter_isr("t", (1, 3))
    assert world.partition("t").former_members == ()
    report(world, 2)
    assert world.decisions == []


def test_another_min_isr_may_end_the_proof() -> None:
    world = cluster()
    world.beat(3, fence=True)
    world.beat(2, fence=True)
    crashed(world, 2)
    world.publish("alter_config", entity="topic", name="t", config={"min.insync.replicas": "1"})
    assert world.partition("t").former_members == ()


def test_an_unclean_election_ends_all_proofs() -> None:
    world = cluster(unclean_leader_election_enable="true")
    all_down(world)
    crashed(world, 1)
    crashed(world, 2)
    assert world.partition("t").former_members == (1, 2)
    world.beat(3)
    assert (world.partition("t").leader, world.partition("t").former_members) == (3, ())
    report(world, 2, last_written_epoch=0)
    assert world.decisions == []


def test_after_two_crashes_only_the_last_process_proves_anything() -> None:
    world = cluster()
    all_down(world)
    crashed(world, 2)
    former = world.broker(2).broker_epoch
    crashed(world, 2)
    assert world.partition("t").former_members == (2,)
    report(world, 2, broker_epoch=former)
    assert world.one(Rejected).field == "broker_epoch"
    assert world.partition("t").elr == (1,)
    report(world, 2)
    assert world.partition("t").elr == (1, 2)


@pytest.mark.parametrize("log_dirs", [("/other",), ()])
def test_a_broker_without_its_former_directory_proves_nothing(log_dirs: tuple[str, ...]) -> None:
    world = cluster()
    all_down(world)
    crashed(world, 2, log_dirs=log_dirs)
    assert world.partition("t").former_members == ()
    report(world, 2)
    assert world.decisions == []


def test_a_broker_that_lost_its_directory_after_a_crash_proves_nothing() -> None:
    world = cluster()
    all_down(world)
    crashed(world, 2)
    crashed(world, 2, log_dirs=("/other",))
    assert world.partition("t").former_members == ()


def test_a_broker_that_was_unregistered_proves_nothing() -> None:
    world = cluster()
    all_down(world)
    crashed(world, 2)
    world.publish("broker_unregister", broker=2)
    assert world.partition("t").former_members == ()


def test_where_a_gateway_is_known_nothing_is_proven() -> None:
    """Brokers behind it commit by themselves."""
    world = cluster()
    world.publish("gateway_started", gateway=100, incarnation="g", voters=[100], is_kraft=True, level=2)
    all_down(world)
    crashed(world, 2)
    report(world, 2)
    assert world.all(LeaderAndIsr) == []
    assert world.partition("t").elr == (1,)


def test_a_partition_whose_high_watermark_was_never_derived_proves_nothing() -> None:
    world = cluster()
    world.create("u", (1, 2, 3), **{"min.insync.replicas": "2"})
    for broker in (3, 2, 1):
        world.beat(broker, fence=True)
    crashed(world, 2)
    report(world, 2, topic="u", log_end_offset=0, last_written_epoch=-1)
    assert world.decisions == []
    assert world.partition("u").former_members == (2,)


def test_at_level_1_a_report_is_refused_and_nothing_is_remembered() -> None:
    world = cluster(level=1)
    all_down(world)
    crashed(world, 2)
    assert world.partition("t").former_members == ()
    report(world, 2, request_id="r")
    assert (world.one(Rejected).field, world.error) == ("kind", "UNSUPPORTED_VERSION")
    assert world.one(Answer).message == "replica_log needs level 2, and the level is 1: raise it first"


@pytest.mark.parametrize(
    ("fields", "field", "error"),
    [
        ({"broker": 9, "broker_epoch": 1}, "broker", "BROKER_ID_NOT_REGISTERED"),
        ({"topic": "none"}, "topic", "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"partition": 7}, "partition", "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"broker": 4}, "broker", "INVALID_REQUEST"),
        ({"broker_epoch": 1}, "broker_epoch", "STALE_BROKER_EPOCH"),
        ({"directory": "/other"}, "directory", "INVALID_REQUEST"),
        ({"last_written_epoch": 5}, "last_written_epoch", "INVALID_REQUEST"),
    ],
)
def test_a_report_that_cannot_be_is_refused_and_its_field_named(fields: dict[str, Any], field: str, error: str) -> None:
    world = cluster()
    world.join(4, log_dirs=DIRS)
    before = world.partition("t")
    report(world, fields.pop("broker", 1), request_id="r", **fields)
    assert (world.one(Rejected).field, world.error) == (field, error)
    assert world.partition("t") == before


@pytest.mark.parametrize(
    "fields", [{"last_written_epoch": -2}, {"log_end_offset": -1}, {"high_watermark": "x"}, {"broker_epoch": None}]
)
def test_a_report_of_another_shape_is_malformed(fields: dict[str, Any]) -> None:
    world = cluster()
    epoch = {"broker": 1, "broker_epoch": world.broker(1).broker_epoch}
    world.publish_raw(world.text_of("replica_log", **(LOG | epoch | fields)))
    assert world.one(Rejected).field == next(iter(fields))


def test_a_report_about_a_former_topic_of_that_name_is_ignored() -> None:
    world = cluster()
    report(world, 1, topic_id="another")
    assert world.decisions == []


def test_logs_are_kept_while_there_is_no_leader_and_forgotten_with_the_next_one() -> None:
    world = cluster()
    report(world, 3)
    assert world.partition("t").reported_logs == ()
    all_down(world)
    crashed(world, 3)
    report(world, 3, log_end_offset=7)
    assert world.partition("t").reported_logs == (ReportedLog(3, world.broker(3).broker_epoch, 0, 7),)
    world.register(1, incarnation="next", log_dirs=DIRS, previous_broker_epoch=world.broker(1).broker_epoch)
    world.beat(1)
    assert (world.partition("t").leader, world.partition("t").reported_logs) == (1, ())
