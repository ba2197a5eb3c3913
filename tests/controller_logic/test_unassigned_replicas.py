"""What brokers hear of replicas whose broker has not said yet in which of its log directories they are."""

import pytest
from msgspec import UNSET

from state.decisions import LeaderAndIsr
from state.log_directory import LOST, MIGRATING, UNASSIGNED
from state.metadata_format import NEWEST_FORMAT
from state.rules import UNASSIGNED_RULES
from tests.controller_logic import test_acls
from tests.support.world import World


def world(rules_version: int = UNASSIGNED_RULES) -> World:
    """Broker 1 has three directories, broker 2 one, and broker 3 one of two."""
    started = test_acls.world(rules_version, NEWEST_FORMAT)
    for broker, log_dirs in ((1, ["A", "B", "C"]), (2, ["D"]), (3, ["E", "F"])):
        started.join(broker, behind_gateway=True, log_dirs=log_dirs)
    started.beat(3, offline_log_dirs=["F"])
    return started


def test_a_new_replica_is_unassigned_where_its_broker_can_choose() -> None:
    started = world()
    started.create("t", (1, 2, 3))
    assert started.one(LeaderAndIsr).directories == {1: UNASSIGNED}
    started.create("u", (2, 3))
    assert started.one(LeaderAndIsr).directories is UNSET
    started.publish("alter_reassignment", topic="u", partition=0, replicas=[2, 1], request_id="r")
    assert started.one(LeaderAndIsr).directories == {1: UNASSIGNED}


def test_older_rules_name_no_directory_of_a_new_replica() -> None:
    started = world(UNASSIGNED_RULES - 1)
    started.create("t", (1, 2, 3))
    assert started.one(LeaderAndIsr).directories is UNSET


@pytest.mark.parametrize(
    ("rules_version", "reserved", "is_readable"),
    [
        (UNASSIGNED_RULES, MIGRATING, True),
        (UNASSIGNED_RULES, UNASSIGNED, True),
        (UNASSIGNED_RULES, LOST, False),
        (UNASSIGNED_RULES - 1, MIGRATING, True),
        (UNASSIGNED_RULES - 1, UNASSIGNED, False),
    ],
)
def test_a_replica_may_be_assigned_to_a_reserved_id(rules_version: int, reserved: str, is_readable: bool) -> None:
    started = world(rules_version)
    started.create("t", (1, 2))
    epoch = started.broker(1).broker_epoch
    assigned = {"topic": "t", "broker": 1, "broker_epoch": epoch, "partitions": [0], "request_id": "a"}
    started.publish("assign_replicas_to_dirs", **assigned, directory="A")
    started.publish("assign_replicas_to_dirs", **assigned, directory=reserved)
    assert (1 in started.one(LeaderAndIsr).isr) == is_readable
