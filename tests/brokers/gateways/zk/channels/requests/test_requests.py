"""From decisions to requests: their order, coalescing, and what a broker is told that is slow or starts."""

import pytest
from msgspec.structs import replace

from brokers.gateways.zk.channels.requests.building import Sender
from brokers.gateways.zk.channels.requests.news import Everything
from brokers.gateways.zk.messages import LEADER_AND_ISR, STOP_REPLICA
from state.reason import Reason
from state.registration import Listener
from tests.brokers.gateways.zk.decided import ID, OTHER_ID, SENDERS, T0, Told, broker, led, lines, stop, topic

BROKERS = [broker(1), broker(2), broker(3)]


def informed_broker(number: int = 1) -> Told:
    """A broker that has been told of three brokers and one partition."""
    told = Told(number)
    told.hear(*BROKERS)
    told.hear(led(is_new=True), topic())
    told.sent()
    return told


def test_a_new_topic_is_told_in_kafkas_order() -> None:
    told = Told()
    told.hear(*BROKERS)
    # Within an event the partitions come before their topic.
    told.hear(led(is_new=True), topic())
    assert lines(told.sent()) == [
        "UpdateMetadata live=1,2,3,100",
        "LeaderAndIsr t-0:1@0 new",
        "UpdateMetadata live=1,2,3,100 t-0:1@0",
    ]


def test_a_broker_without_a_replica_gets_metadata_only() -> None:
    told = Told(4)
    told.hear(*BROKERS, broker(4))
    told.hear(led(is_new=True), topic())
    assert lines(told.sent())[1:] == ["UpdateMetadata live=1,2,3,4,100 t-0:1@0"]


def test_another_isr_in_the_same_leader_epoch_is_metadata_only() -> None:
    told = informed_broker()
    told.hear(led(1, 0, 1, isr=(1, 2)))
    assert lines(told.sent()) == ["UpdateMetadata live=1,2,3,100 t-0:1@0"]


def test_a_slow_broker_hears_of_the_newest_leader_only() -> None:
    told = informed_broker(2)
    told.hear(broker(1, "fenced"), led(2, 1, 1, isr=(2, 3), to=(2, 3)))
    told.hear(led(3, 2, 2, isr=(3,), to=(2, 3)))
    assert lines(told.sent()) == [
        "UpdateMetadata live=2,3,100",
        "LeaderAndIsr t-0:3@2",
        "UpdateMetadata live=2,3,100 t-0:3@2",
    ]
    assert told.sent() == []


def test_a_fenced_replica_is_shown_as_offline() -> None:
    told = informed_broker(2)
    told.hear(broker(1, "fenced"), led(2, 1, 1, isr=(2, 3), to=(2, 3)))
    [state] = told.sent()[-1].values["TopicStates"][0]["PartitionStates"]
    assert (state["OfflineReplicas"], state["ZkVersion"]) == ([1], 1)


def test_a_deleted_topic_leaves_the_metadata_before_its_log_is_removed() -> None:
    told = informed_broker()
    told.hear(led(-1, 1, 1, to=(), reason=Reason.TOPIC_DELETED), stop(1, 2, 3), topic("deleting"))
    assert lines(told.sent()) == ["UpdateMetadata live=1,2,3,100 t-0:-2@1", "StopReplica t-0:delete"]


def test_a_topic_that_is_gone_at_once_leaves_the_metadata_too() -> None:
    """No replica of it is online, so no broker is told to remove its log, and nothing says that it is being deleted."""
    told = informed_broker()
    told.hear(broker(2, "fenced"), broker(3, "fenced"), led(-1, 1, 1, isr=(2,), replicas=(2, 3), to=()))
    told.sent()
    told.hear(topic("deleted"))
    assert lines(told.sent()) == ["UpdateMetadata live=1,100 t-0:-2@1"]


def test_a_topic_that_is_created_again_does_not_overtake_the_removal_of_the_former_one() -> None:
    told = informed_broker()
    told.hear(led(2, 1, 1, to=(1, 2, 3)))
    told.hear(led(-1, 2, 2, to=(), reason=Reason.TOPIC_DELETED), stop(1, 2, 3), topic("deleting"))
    told.hear(topic("deleted"))
    told.hear(led(topic_id=OTHER_ID, is_new=True), topic(topic_id=OTHER_ID))
    sent = told.sent()
    assert lines(sent) == [
        "UpdateMetadata live=1,2,3,100 t-0:-2@2",
        "StopReplica t-0:delete",
        "LeaderAndIsr t-0:1@0 new",
        "UpdateMetadata live=1,2,3,100 t-0:1@0",
    ]
    assert [sent[0].values["TopicStates"][0]["TopicId"], sent[2].told[T0].topic_id] == [ID, OTHER_ID]


def test_a_broker_that_starts_is_told_everything() -> None:
    told = informed_broker()
    told.answered.clear()
    told.pending.tell_all(1, Everything(told.view))
    assert lines(told.sent()) == [
        "UpdateMetadata live=1,2,3,100",
        "LeaderAndIsr t-0:1@0 new",
        "UpdateMetadata live=1,2,3,100 t-0:1@0",
    ]


def test_a_queue_that_would_be_too_long_is_emptied_and_everything_is_told_instead() -> None:
    told = Told(1, partitions_max=10)
    told.hear(*BROKERS)
    told.hear(*[led(partition=number) for number in range(6)], topic())
    assert told.pending.is_overfull
    assert told.pending.count == 0
    told.pending.tell_all(1, Everything(told.view))
    [_, request, _] = told.sent()
    assert len(request.told) == 6


def test_requests_carry_the_epochs_of_zookeeper() -> None:
    told = informed_broker()
    told.hear(led(2, 1, 4, to=(1, 2, 3), adding_replicas=(3,)))
    request = told.sent()[0]
    assert request.api_key == LEADER_AND_ISR
    assert [request.values[name] for name in ("ControllerId", "ControllerEpoch", "BrokerEpoch")] == [100, 7, 1_000]
    assert request.values["LiveLeaders"] == [{"BrokerId": 2, "HostName": "host-2", "Port": 9_092}]
    [state] = request.values["TopicStates"][0]["PartitionStates"]
    assert (state["ControllerEpoch"], state["PartitionEpoch"], state["AddingReplicas"]) == (7, 4, [3])


def test_each_batch_begins_with_the_brokers_that_are_alive_now() -> None:
    told = informed_broker()
    told.hear(stop(1, delete=False, leader_epoch=0))
    told.hear(led(3, 1, 1, to=(1, 3)))
    told.hear(broker(4), led(4, 2, 2, replicas=(1, 4), isr=(1, 4), to=(1, 4)))
    requests = told.sent()
    first = next(number for number, one in enumerate(requests) if one.api_key == LEADER_AND_ISR)
    assert lines(requests[:1]) == ["UpdateMetadata live=1,2,3,4,100"]
    assert lines([requests[first]]) == ["LeaderAndIsr t-0:4@2"]


def test_a_broker_that_comes_back_is_told_to_remove_logs_that_a_deletion_waits_for() -> None:
    told = informed_broker()
    told.hear(led(-1, 2, 2, to=(), reason=Reason.TOPIC_DELETED), topic("ineligible"))
    told.pending.tell_all(1, Everything(told.view))
    sent = told.sent()
    assert lines(sent) == ["UpdateMetadata live=1,2,3,100 t-0:-2@2", "StopReplica t-0:delete"]
    assert sent[1].told[T0].topic_id == ID


def test_a_replica_is_new_while_it_is_added() -> None:
    told = Told(4)
    told.hear(*BROKERS, broker(4))
    told.hear(led(is_new=True), topic())
    told.sent()
    moving = {"replicas": (4, 1, 2, 3), "adding_replicas": (4,), "to": (4, 1, 2, 3)}
    told.hear(led(1, 1, 1, **moving))
    assert lines(told.sent())[0] == "LeaderAndIsr t-0:1@1 new"
    # Its broker was away, so its log may be in a directory that failed.
    told.hear(led(1, 2, 2, reason=Reason.REPLICA_ONLINE, **moving))
    assert lines(told.sent())[0] == "LeaderAndIsr t-0:1@2"
    told.hear(led(1, 3, 3, isr=(4, 1), **moving))
    assert lines(told.sent())[0] == "LeaderAndIsr t-0:1@3"


def test_a_change_of_the_live_brokers_is_told() -> None:
    told = informed_broker()
    told.hear(broker(4, "fenced"))
    assert told.sent() == []
    told.hear(broker(4))
    assert lines(told.sent()) == ["UpdateMetadata live=1,2,3,4,100"]
    told.hear(broker(4, epoch=1))
    assert told.sent() == []


@pytest.mark.parametrize(("state", "live"), [("fenced", "1,2"), ("controlled_shutdown", "1,2,3")])
def test_replicas_of_a_broker_that_goes_are_offline(state: str, live: str) -> None:
    told = informed_broker()
    told.hear(led(1, 1, 1, isr=(1, 2)))
    told.sent()
    told.hear(broker(3, state))
    *_, sent = told.sent()
    assert lines([sent]) == [f"UpdateMetadata live={live},100 t-0:1@1"]
    assert sent.values["TopicStates"][0]["PartitionStates"][0]["OfflineReplicas"] == [3]


def test_a_broker_that_comes_back_is_told_to_remove_logs_of_replicas_that_were_moved() -> None:
    told = informed_broker()
    told.hear(led(2, 1, 1, replicas=(2, 3), isr=(2, 3), to=(2, 3)))
    orders = [stop(1, leader_epoch=1), stop(3, leader_epoch=1, partition=1)]
    told.pending.tell_all(1, Everything(told.view), orders)
    assert lines(told.sent())[-1] == "StopReplica t-0:delete"
    # Meanwhile it has the replica again.
    told.hear(led(2, 2, 2, replicas=(1, 2, 3), isr=(2, 3), to=(1, 2, 3)))
    told.pending.tell_all(1, Everything(told.view), orders)
    assert "StopReplica t-0:delete" not in lines(told.sent())


def test_orders_to_remove_logs_outlive_that_everything_is_told() -> None:
    told = informed_broker()
    told.hear(stop(1, leader_epoch=1), led(2, 1, 1, replicas=(2, 3), isr=(2, 3), to=(2, 3)))
    told.pending.tell_all(1, Everything(told.view))
    assert lines(told.sent())[-1] == "StopReplica t-0:delete"
    told.pending.tell_all(1, Everything(told.view))
    assert "StopReplica t-0:delete" not in lines(told.sent()), "it was sent"


@pytest.mark.parametrize("is_on_its_way", [False, True])
def test_orders_to_remove_logs_outlive_a_queue_that_is_too_long(is_on_its_way: bool) -> None:
    told = Told(1, partitions_max=10)
    told.hear(*BROKERS, led(is_new=True), topic())
    told.sent()
    told.hear(stop(1, leader_epoch=1), led(2, 1, 1, replicas=(2, 3), isr=(2, 3), to=(2, 3)))
    batch = told.pending.take() if is_on_its_way else None
    told.hear(*[led(partition=number) for number in range(1, 7)])
    if batch is not None:
        told.pending.put_back(batch)
    assert told.pending.is_overfull
    told.pending.tell_all(1, Everything(told.view))
    assert lines(told.sent())[-1] == "StopReplica t-0:delete"


def test_a_log_of_a_deleted_topic_is_removed_before_everything_is_told() -> None:
    told = informed_broker()
    told.hear(stop(1), led(-1, 1, 1, reason=Reason.TOPIC_DELETED), topic("deleting"))
    told.hear(topic("deleted"))
    told.hear(led(topic_id=OTHER_ID, is_new=True), topic(topic_id=OTHER_ID))
    told.pending.tell_all(1, Everything(told.view))
    sent = [line for line in lines(told.sent()) if not line.startswith("UpdateMetadata")]
    assert sent == ["StopReplica t-0:delete", "LeaderAndIsr t-0:1@0 new"]


def test_a_broker_that_takes_no_orders_is_told_the_newest_ones() -> None:
    told = Told(1, partitions_max=10)
    told.hear(*BROKERS)
    for number in range(100):
        told.hear(stop(1, partition=number))
    told.pending.tell_all(1, Everything(told.view))
    stopped = [request.told for request in told.sent() if request.api_key == STOP_REPLICA]
    assert [place.partition for one in stopped for place in one][-1] == 99
    assert sum(len(one) for one in stopped) <= 11


def test_a_replica_that_is_needed_again_keeps_its_log() -> None:
    told = informed_broker()
    told.hear(stop(1, leader_epoch=1))
    # One that is only added again starts over.
    told.hear(led(2, 2, 2, replicas=(1, 2, 3), isr=(2, 3), adding_replicas=(1,)))
    assert "StopReplica t-0:delete" in lines(told.sent())
    told.hear(stop(1, leader_epoch=3))
    told.hear(led(1, 4, 4, replicas=(2, 3, 1), isr=(1,), removing_replicas=(1,)))
    assert "StopReplica t-0:delete" not in lines(told.sent())


def test_the_gateway_has_a_rack_if_all_brokers_have_one() -> None:
    # Otherwise no broker could make an internal topic, because it counts the gateway among the brokers.
    told = Told()
    told.hear(replace(broker(1), rack="a"), replace(broker(2), rack="b"))
    assert [one["Rack"] for one in told.sent()[-1].values["LiveBrokers"]] == ["a", "b", "a"]
    told.hear(broker(3))
    assert [one["Rack"] for one in told.sent()[-1].values["LiveBrokers"]] == ["a", "b", None, None]


def test_a_listener_that_kafka_could_not_name_is_left_out() -> None:
    told = Told()
    odd = (Listener("ODD", "host-2", 1, "ODD"), Listener("PLAINTEXT", "host-2", 9_092))
    told.hear(broker(1), replace(broker(2), listeners=odd), replace(broker(3), listeners=()))
    listed = [[one["Listener"] for one in held["Endpoints"]] for held in told.sent()[-1].values["LiveBrokers"]]
    assert listed == [["PLAINTEXT"], ["PLAINTEXT"], [], ["PLAINTEXT"]]
    told.hear(topic(), led(3, isr=(3,)))
    assert [request.values["LiveLeaders"] for request in told.sent() if "LiveLeaders" in request.values] == [[]]


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("leader_recovery_state", ["RECOVERED", "RECOVERING"])
def test_every_version_tells_a_leader_that_recovers(sender: Sender, leader_recovery_state: str) -> None:
    told = Told(1, sender=sender)
    told.hear(broker(1), broker(2, "fenced"))
    # An unclean election while a replica is added and another one is removed.
    moving = {"replicas": (1, 2, 3), "adding_replicas": (2,), "removing_replicas": (3,)}
    told.hear(led(1, 5, isr=(1,), unclean=True, leader_recovery_state=leader_recovery_state, **moving))
    told.hear(topic())
    assert "LeaderAndIsr t-0:1@5" in lines(told.sent())
