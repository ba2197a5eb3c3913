"""What brokers hear of replicas whose broker has not said yet in which of its log directories they are."""

import pytest
from msgspec import UNSET

from state.decisions import LeaderAndIsr
from state.log_directory import LOST, MIGRATING, UNASSIGNED
from tests.controller_logic import test_acls
from tests.support.world import World


def world() -> World:
    """Broker 1 has three directories, broker 2 one, and broker 3 one of two."""
    started = test_acls.world()
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


@pytest.mark.parametrize(("reserved", "is_readable"), [(MIGRATING, True), (UNASSIGNED, True), (LOST, False)])
def test_a_replica_may_be_assigned_to_a_reserved_id(reserved: str, is_readable: bool) -> None:
    started = world()
    started.create("t", (1, 2))
    epoch = started.broker(1).broker_epoch
    assigned = {"topic": "t", "broker": 1, "broker_epoch": epoch, "partitions": [0], "request_id": "a"}
    started.publish("assign_replicas_to_dirs", **assigned, directory="A")
    started.publish("assign_replicas_to_dirs", **assigned, directory=reserved)
    assert (1 in started.one(LeaderAndIsr).isr) == is_readable
