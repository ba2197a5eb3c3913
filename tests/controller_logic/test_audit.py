"""What an observed controller decides is compared with the rules, in its dialect, and invariants are checked."""

from typing import Any

import pytest

from state.decisions import Divergence, Violation
from tests.controller_logic.test_observation import led_by_1, seeded
from tests.support.observing import Row, Shadow, broker, partition

ALL = (1, 2, 3)


def differences(world: Shadow) -> list[tuple[int, str, object, object]]:
    return [(one.partition, one.field, one.observed, one.predicted) for one in world.all(Divergence)]


def fenced(world: Shadow, number: int, *rows: Row, cause: str = "session_expired") -> None:
    world.observe(cause, evidence={"broker": number}, brokers=[broker(number, fenced=True)], partitions=rows)


# What Kafka's own controller decides, and what the rules decide in its dialect: the same.
SAME: list[tuple[str, Row, str, Row, dict[str, Any]]] = [
    (
        "another leader of the ISR",
        partition(0, ALL, ALL, 1, (4, 9)),
        "session_expired",
        partition(0, ALL, (2, 3), 2, (5, 10)),
        {"evidence": {"broker": 1}, "brokers": [broker(1, fenced=True)]},
    ),
    (
        "a smaller ISR keeps the leader epoch",
        partition(0, ALL, ALL, 1, (4, 9)),
        "session_expired",
        partition(0, ALL, (1, 3), 1, (4, 10)),
        {"evidence": {"broker": 2}, "brokers": [broker(2, fenced=True)]},
    ),
    (
        "nobody else was in sync at a shutdown",
        partition(0, ALL, (1,), 1, (4, 9)),
        "controlled_shutdown",
        partition(0, ALL, (1,), -1, (5, 10)),
        {"evidence": {"broker": 1}, "brokers": [broker(1, shutting_down=True)]},
    ),
    (
        "the last in-sync replica is back",
        partition(0, ALL, (2,), -1, (4, 9)),
        "broker_ready",
        partition(0, ALL, (2,), 2, (5, 10)),
        {"evidence": {"broker": 2}, "brokers": [broker(2)]},
    ),
    ("the leader asks", partition(0, ALL, (1,), 1, (4, 9)), "isr_expanded", partition(0, ALL, (1, 3), 1, (4, 10)), {}),
    (
        "the preferred leader",
        partition(0, ALL, ALL, 2, (4, 9)),
        "preferred_election",
        partition(0, ALL, ALL, 1, (5, 10)),
        {},
    ),
    (
        "an unclean election",
        partition(0, (4, 2, 3), (4,), -1, (4, 9)),
        "unclean_election",
        partition(0, (4, 2, 3), (2,), 2, (5, 10), leader_recovery_state="RECOVERING"),
        {},
    ),
    (
        "a move begins",
        partition(0, (1, 2), (1, 2), 1, (4, 9)),
        "reassignment_began",
        partition(0, (3, 1, 2), (1, 2), 1, (4, 10), adding_replicas=[3], removing_replicas=[2]),
        {},
    ),
    (
        "a move ends without its leader",
        partition(0, (3, 2, 1), (1, 2), 1, (4, 9), adding_replicas=[3], removing_replicas=[1]),
        "reassignment_ended",
        partition(0, (3, 2), (2, 3), 3, (5, 10)),
        {},
    ),
    (
        "a move is cancelled, and a dropped replica raises the leader epoch",
        partition(0, (3, 1, 2), (1, 2), 1, (4, 9), adding_replicas=[3], removing_replicas=[2]),
        "reassignment_cancelled",
        partition(0, (1, 2), (1, 2), 1, (5, 10)),
        {},
    ),
    (
        "another order is a move that is done at once",
        partition(0, (1, 2), (1, 2), 1, (4, 9)),
        "reassignment_done_at_once",
        partition(0, (2, 1), (1, 2), 1, (4, 10)),
        {},
    ),
    (
        "a replica is placed",
        partition(0, (1, 2), (1, 2), 1, (4, 9)),
        "replica_placed",
        partition(0, (1, 2), (1, 2), 1, (4, 10), directories=("a", "b")),
        {},
    ),
]


@pytest.mark.parametrize(("what", "before", "cause", "after", "more"), SAME, ids=[one[0] for one in SAME])
def test_what_kafka_decides_is_what_the_rules_decide(
    what: str, before: Row, cause: str, after: Row, more: dict[str, Any]
) -> None:
    world = seeded(before)
    world.observe(cause, partitions=[after], **more)
    assert (differences(world), world.all(Violation)) == ([], [])


@pytest.mark.parametrize(("what", "before", "cause", "after", "more"), SAME, ids=[one[0] for one in SAME])
def test_another_epoch_than_the_rules_would_give_is_a_divergence(
    what: str, before: Row, cause: str, after: Row, more: dict[str, Any]
) -> None:
    world = seeded(before)
    wrong = after | {"partition_epoch": after["partition_epoch"] + 1}
    world.observe(cause, partitions=[wrong], **more)
    assert differences(world) == [(0, "partition_epoch", wrong["partition_epoch"], after["partition_epoch"])]
    told = world.one(Divergence)
    assert (told.offset, told.topic, told.rule) == (2, "t", cause)
    # The state is what was observed, so the next prediction begins there.
    assert world.partition("t").partition_epoch == wrong["partition_epoch"]


def test_each_field_that_differs_is_told() -> None:
    world = led_by_1()
    fenced(world, 1, partition(0, ALL, (3,), 3, (6, 10)))
    assert differences(world) == [
        (0, "isr", (3,), (2, 3)),
        (0, "leader", 3, 2),
        (0, "leader_epoch", 6, 5),
    ]


def test_a_partition_that_was_left_out_is_told() -> None:
    world = seeded(partition(0, ALL, ALL, 1, (0, 0)), partition(1, (2, 3, 1), ALL, 2, (0, 0)))
    fenced(world, 1, partition(0, ALL, (2, 3), 2, (1, 1)))
    assert differences(world) == [(1, "isr", (1, 2, 3), (2, 3)), (1, "partition_epoch", 0, 1)]


def test_an_operation_in_parts_is_checked_with_its_last_part() -> None:
    world = seeded(partition(0, ALL, ALL, 1, (0, 0)), partition(1, (1, 3), (1, 3), 1, (0, 0)))
    told: dict[str, Any] = {"evidence": {"broker": 1}, "offset": 7, "parts": 2}
    world.observe("session_expired", part=0, partitions=[partition(0, ALL, (2, 3), 2, (1, 1))], **told)
    assert differences(world) == []
    last = partition(1, (1, 3), (3,), 3, (1, 1))
    world.observe("session_expired", part=1, partitions=[last], brokers=[broker(1, fenced=True)], **told)
    assert (differences(world), world.all(Violation)) == ([], [])


def test_a_first_leader_is_the_first_replica_that_is_online() -> None:
    world = led_by_1()
    fenced(world, 2, partition(0, ALL, (1, 3), 1, (4, 10)))
    new = {"topic": "new", "topic_id": "4Yt2vYOBQ0mUFi8VF2mBZw"}
    rows = [partition(0, (2, 3, 1), (3, 1), 3, (0, 0), "new"), partition(1, (3, 1), (3, 1), 1, (0, 0), "new")]
    world.observe("topic_created", topics=[new], partitions=rows)
    assert differences(world) == [(1, "leader", 1, 3)]


def test_eligible_leader_replicas_are_predicted() -> None:
    strict = {"entity_type": "topic", "entity": "t", "key": "min.insync.replicas", "value": "2"}
    eligible = {"name": "eligible.leader.replicas.version", "level": 1}
    world = seeded(partition(0, ALL, (1, 2), 1, (0, 0)), settings=[strict], features=[eligible])
    fenced(world, 2, partition(0, ALL, (1,), 1, (0, 1), elr=(2,)))
    fenced(world, 1, partition(0, ALL, (), -1, (1, 2), elr=(1, 2), last_known_elr=(1,)))
    assert (differences(world), world.line("t")) == ([], "Offline leader=none epoch=1/2 isr=")
    row = partition(0, ALL, (2,), 2, (2, 3), elr=(1,))
    world.observe("broker_ready", evidence={"broker": 2}, brokers=[broker(2)], partitions=[row])
    assert (differences(world), world.all(Violation)) == ([], [])
    assert (world.partition("t").elr, world.partition("t").last_known_elr) == ((1,), ())


def test_a_replica_in_a_lost_directory_is_not_expected_to_lead() -> None:
    several = ("directory-a", "directory-b")
    world = Shadow()
    where = {"directories": ("directory-a", "directory-c")}
    world.observe(
        "seed",
        brokers=[broker(1, log_dirs=several), broker(2)],
        topics=[{"topic": "t", "topic_id": "TP9lxr6dp7ZsOP5Q0S-ctQ"}],
        partitions=[partition(0, (1, 2), (1, 2), 1, (0, 0), **where)],
    )
    world.observe(
        "directory_failed",
        evidence={"broker": 1},
        brokers=[broker(1, log_dirs=["directory-b"])],
        partitions=[partition(0, (1, 2), (2,), 2, (1, 1), **where)],
    )
    assert differences(world) == []
    fenced(world, 2, partition(0, (1, 2), (2,), -1, (2, 2), **where))
    assert differences(world) == []


def test_a_known_defect_is_named() -> None:
    world = led_by_1()
    fenced(world, 2, partition(0, ALL, (1, 3), 1, (5, 10)))
    assert differences(world) == [(0, "leader_epoch", 5, 4)]
    assert str(world.one(Divergence).defect).startswith("KAFKA-15021 ")


BROKEN: list[tuple[Row, str, str]] = [
    (partition(0, ALL, (2, 3), 4, (5, 10)), "the leader is in the ISR", "leader 4 is not in the ISR 2,3"),
    (
        partition(0, ALL, (2, 9), 2, (5, 10)),
        "every member of the ISR is an assigned replica",
        "the ISR 2,9 has 9, not of 1,2,3",
    ),
    (partition(0, ALL, ALL, 1, (4, 8)), "epochs do not go back", "partition epoch 8 follows 9"),
    (partition(0, ALL, ALL, 1, (3, 10)), "epochs do not go back", "leader epoch 3 follows 4"),
    (
        partition(0, ALL, ALL, 2, (4, 10)),
        "another leader has another leader epoch",
        "leader 2 follows 1 in leader epoch 4",
    ),
]


@pytest.mark.parametrize(("row", "invariant", "message"), BROKEN)
def test_what_no_controller_may_do_is_a_violation(row: Row, invariant: str, message: str) -> None:
    world = seeded(partition(0, ALL, ALL, 1, (4, 9)), brokers=(1, 2, 3, 4, 9))
    world.observe("other", partitions=[row])
    found = world.one(Violation)
    assert (found.offset, found.invariant, found.message) == (2, invariant, message)


def test_a_fenced_leader_is_a_violation_with_the_defect_that_elects_it() -> None:
    world = seeded(partition(0, ALL, (), -1, (4, 9)), brokers=(1, 3))
    row = partition(0, ALL, (2,), 2, (5, 10), leader_recovery_state="RECOVERING")
    world.observe("unclean_election", brokers=[broker(2, fenced=True)], partitions=[row])
    found = world.one(Violation)
    assert (found.invariant, found.message) == ("a leader is not fenced", "leader 2 is fenced, or not registered")
    assert str(found.defect).startswith("KAFKA-19522 ")


def test_a_leader_whose_broker_is_fenced_without_an_election_is_a_violation() -> None:
    world = led_by_1()
    fenced(world, 1)
    assert [(one.partition, one.invariant) for one in world.all(Violation)] == [(0, "a leader is not fenced")]
    assert [field for _, field, _, _ in differences(world)] == ["isr", "leader", "leader_epoch", "partition_epoch"]


def test_a_fenced_broker_that_joins_an_isr_is_a_violation_but_not_after_a_gap() -> None:
    world = led_by_1()
    fenced(world, 3, partition(0, ALL, (1, 2), 1, (4, 10)))
    world.observe("gap", partitions=[partition(0, ALL, ALL, 1, (4, 11))])
    assert world.all(Violation) == []
    fenced(world, 2, partition(0, ALL, (1, 3), 1, (4, 12)))
    world.observe("isr_expanded", partitions=[partition(0, ALL, (1, 2, 3), 1, (4, 13))])
    found = world.one(Violation)
    assert (found.invariant, found.message) == (
        "no fenced broker joins the ISR",
        "2 joined the ISR 1,2,3 while fenced or shutting down",
    )
