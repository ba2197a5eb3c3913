"""Where the replicas of brokers with several log directories are, in cases that no story of ``log_dirs`` shows."""

import pytest

from state.decisions import Answer, LeaderAndIsr
from state.log_directory import MIGRATING, OFFLINE_KEPT_MAX, UNASSIGNED
from tests.controller_logic import test_acls
from tests.support.world import World


def started(*, gateway_is_kraft: bool = True) -> World:
    """Brokers 12 and 13 behind a gateway, with one directory each."""
    world = test_acls.world(is_kraft=gateway_is_kraft)
    world.join(12, is_kraft=True, log_dirs=["D"])
    world.join(13, is_kraft=True, log_dirs=["E"])
    return world


def with_several() -> World:
    """Broker 11 besides, with directories A and B, and a partition that it leads."""
    world = started()
    world.join(11, is_kraft=True, log_dirs=["A", "B"])
    world.create("t", (11, 12, 13))
    return world


def restart(world: World, broker: int, *log_dirs: str) -> None:
    """Stop a broker cleanly, and start it behind a gateway with these directories."""
    world.beat(broker, shutdown=True)
    world.beat(broker, fence=True)
    former = world.broker(broker).broker_epoch
    world.join(broker, incarnation=f"after-{former}", is_kraft=True, log_dirs=list(log_dirs))
    assert world.broker(broker).broker_epoch > former


def assign(world: World, broker: int, directory: str, topic: str = "t") -> str:
    """Assign a topic's first partition, and return the error of the request, or else of the partition."""
    epoch = world.broker(broker).broker_epoch
    fields = {"topic": topic, "broker": broker, "broker_epoch": epoch, "partitions": [0], "directory": directory}
    world.publish("assign_replicas_to_dirs", **fields, request_id="a")
    answer = world.one(Answer)
    return answer.error if answer.error != "NONE" else answer.results[0].error


def test_failed_directories_of_a_broker_without_a_gateway_are_passed_over() -> None:
    world = started()
    world.join(14, log_dirs=["A", "B"])
    world.beat(14, offline_log_dirs=["A"])
    assert world.broker(14).log_dirs == ("A", "B")


def test_without_a_metadata_log_no_replica_is_assigned() -> None:
    world = started(gateway_is_kraft=False)
    world.create("t", (12, 13))
    assert assign(world, 12, "D") == "UNSUPPORTED_VERSION"


def test_a_broker_with_one_directory_may_name_it_or_none() -> None:
    world = started()
    world.create("t", (12, 13))
    for directory, error in (("D", "NONE"), (MIGRATING, "NONE"), (UNASSIGNED, "NONE"), ("X", "INVALID_REQUEST")):
        assert assign(world, 12, directory) == error
        assert world.all(LeaderAndIsr) == []


def test_a_replica_of_an_unknown_topic_is_in_no_directory() -> None:
    assert assign(with_several(), 11, "A", topic="u") == "UNKNOWN_TOPIC_ID"


@pytest.mark.parametrize(("first", "again"), [("A", "A"), (MIGRATING, UNASSIGNED)])
def test_the_same_assignment_once_more_decides_nothing(first: str, again: str) -> None:
    world = with_several()
    assert assign(world, 11, first) == "NONE"
    assert assign(world, 11, again) == "NONE"
    assert world.all(LeaderAndIsr) == []


def test_brokers_hear_of_a_replica_that_is_in_no_directory_any_more() -> None:
    world = started()
    world.join(11, is_kraft=True, log_dirs=["A", "B"])
    world.create("t", (11, 12, 13))
    assert assign(world, 11, "A") == "NONE"
    assert world.one(LeaderAndIsr).directories == {11: "A"}
    assert assign(world, 11, MIGRATING) == "NONE"
    assert world.one(LeaderAndIsr).directories == {11: UNASSIGNED}


def test_a_replica_in_a_failed_directory_hands_over_to_the_next_one() -> None:
    world = with_several()
    world.beat(11, offline_log_dirs=["A"])
    assert assign(world, 11, "A") == "NONE"
    held = world.one(LeaderAndIsr)
    assert (held.leader, held.isr) == (12, (12, 13))


@pytest.mark.parametrize("directory", ["A", MIGRATING])
def test_a_replica_without_its_log_stays_offline_when_it_is_assigned_once_more(directory: str) -> None:
    world = with_several()
    assert assign(world, 11, directory) == "NONE"
    told = {"topic": "t", "partition": 0, "broker": 11, "broker_epoch": world.broker(11).broker_epoch}
    world.publish("replica_report", **told, leader_epoch=0, outcome="offline")
    assert assign(world, 11, directory) == "NONE"
    assert world.replica_states("t") == "Offline,Online,Online"


def test_a_fenced_brokers_replica_stays_offline_when_it_is_assigned() -> None:
    world = with_several()
    world.beat(11, fence=True)
    assert assign(world, 11, "A") == "NONE"
    assert (world.replica_states("t"), world.partition("t").directories) == ("Offline,Online,Online", ("A", "", ""))


def test_a_replica_that_a_reassignment_adds_stays_new_when_it_is_assigned() -> None:
    world = with_several()
    world.create("u", (12,))
    world.publish("alter_reassignment", topic="u", partition=0, replicas=[11, 12])
    assert assign(world, 11, "A", topic="u") == "NONE"
    assert world.replica_states("u") == "New,Online"


def test_a_directory_that_a_broker_never_had_is_forgotten_when_it_gets_another_one() -> None:
    world = with_several()
    assert assign(world, 11, "X") == "NONE"
    assert world.replica_states("t").startswith("Offline")
    restart(world, 11, "A", "B")
    assert (world.partition("t").directories, world.replica_states("t")[:7]) == (("X", "", ""), "Offline")
    restart(world, 11, "A", "B", "C")
    assert (world.partition("t").directories, world.replica_states("t")[:6]) == ((), "Online")


def test_what_a_broker_said_before_it_was_unregistered_is_forgotten() -> None:
    world = with_several()
    assert assign(world, 11, "A") == "NONE"
    world.publish("broker_unregister", broker=11)
    world.join(11, incarnation="second", is_kraft=True, log_dirs=["Q"])
    assert (world.partition("t").directories, world.replica_states("t")) == ((), "Online,Online,Online")


def test_a_broker_with_one_directory_keeps_it_to_itself() -> None:
    world = started()
    world.create("t", (12, 13))
    restart(world, 12, "D")
    assert world.partition("t").directories == ()


def test_a_broker_whose_only_directory_is_replaced_by_two_has_lost_its_replicas() -> None:
    world = started()
    world.create("t", (12, 13))
    restart(world, 12, "F", "G")
    assert world.broker(12).offline_log_dirs == ("D",)
    assert (world.partition("t").directories, world.replica_states("t")) == (("D", ""), "Offline,Online")


def test_a_broker_that_moves_behind_a_gateway_does_not_say_where_its_replicas_were() -> None:
    world = started()
    world.join(14, log_dirs=["/data"])
    world.create("t", (14, 12))
    restart(world, 14, "A", "B")
    assert world.partition("t").directories == ()


def test_a_broker_that_lost_all_directories_but_one_may_have_had_replicas_in_any() -> None:
    world = with_several()
    world.beat(11, offline_log_dirs=["B"])
    assert (world.broker(11).log_dirs, world.broker(11).offline_log_dirs) == (("A",), ("B",))
    again = {"incarnation": world.broker(11).incarnation, "is_kraft": True}
    world.register(11, **again, log_dirs=["A", "C"])
    assert world.partition("t").directories == ()


def test_no_more_than_so_many_lost_directories_are_kept() -> None:
    world = started()
    names = [f"dir-{number}" for number in range(OFFLINE_KEPT_MAX + 3)]
    world.join(11, is_kraft=True, log_dirs=names)
    world.beat(11, offline_log_dirs=names[:2])
    world.beat(11, offline_log_dirs=names[:-1])
    # Those that were lost last.
    assert world.broker(11).offline_log_dirs == tuple(names[-OFFLINE_KEPT_MAX - 1 : -1])
    again = {"incarnation": world.broker(11).incarnation, "is_kraft": True}
    world.register(11, **again, log_dirs=["only"])
    assert world.broker(11).offline_log_dirs == (names[-1], *names[-OFFLINE_KEPT_MAX - 1 : -2])


def test_brokers_hear_of_several_new_replicas_in_the_order_of_ids() -> None:
    world = with_several()
    world.join(16, is_kraft=True, log_dirs=["F", "G"])
    world.create("u", (16, 11))
    told = world.one(LeaderAndIsr).directories
    assert isinstance(told, dict)
    assert list(told) == [11, 16]
