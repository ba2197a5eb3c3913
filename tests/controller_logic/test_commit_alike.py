"""Partitions that differ only in what the rule depends on do not get each other's effect."""

from tests.support.world import claimed


def test_replicas_keep_their_own_states_when_a_broker_fails() -> None:
    world = claimed(1, 2, 3)
    world.create("t", (1, 2, 3), (1, 2, 3))
    world.alter_isrs(1, ("t", 0, (1, 2)), ("t", 1, (1, 2)))
    told = {"topic": "t", "partition": 0, "broker": 3, "broker_epoch": world.broker(3).broker_epoch}
    world.publish("replica_report", **told, leader_epoch=0, outcome="offline")
    world.fence(1)
    assert [world.replica_states("t", number) for number in (0, 1)] == [
        "Offline,Online,Offline",
        "Offline,Online,Online",
    ]
