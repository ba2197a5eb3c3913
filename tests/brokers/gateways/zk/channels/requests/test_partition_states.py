"""Descriptions of partitions are shared between brokers, and follow the newest decision."""

from typing import Any

from msgspec.structs import replace

from brokers.gateways.zk.channels.requests import partition_states
from brokers.gateways.zk.channels.requests.partition_states import PartitionStates
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import IBP_2_6, IBP_3_9
from tests.brokers.gateways.zk.decided import T0, Told, broker, led, topic

BROKERS = [broker(1), broker(2), broker(3)]


def states_of(told: Told) -> list[dict[str, Any]]:
    requests = [one for one in told.sent() if one.api_key == 6]
    return [state for one in requests for topic in one.values["TopicStates"] for state in topic["PartitionStates"]]


def two_brokers() -> tuple[Told, Told]:
    """Return brokers 1 and 3, which share a view and its descriptions."""
    told, other = Told(1), Told(3)
    other.view, other.states = told.view, told.states
    return told, other


def test_a_description_is_made_once_for_all_brokers() -> None:
    view = ClusterView()
    states, decision = PartitionStates(view, 7, IBP_3_9), led()
    view.apply(decision)
    assert states.metadata(T0, decision, 0) is states.metadata(T0, decision, 0)
    assert states.role(T0, decision, 0, is_new=False) is states.role(T0, decision, 0, is_new=False)
    assert states.role(T0, decision, 0, is_new=True) != states.role(T0, decision, 0, is_new=False)
    # A leader of an old version wrote the znode, so it is at another version than was decided.
    assert states.metadata(T0, decision, 1) != states.metadata(T0, decision, 0)


def test_every_broker_hears_of_a_replica_that_went_offline() -> None:
    told, other = two_brokers()
    for one in (told, other):
        one.hear(*BROKERS)
        one.hear(led(is_new=True), topic())
        assert [state["OfflineReplicas"] for state in states_of(one)] == [[]]
    for one in (told, other):
        one.hear(broker(2, "fenced"))
        assert [state["OfflineReplicas"] for state in states_of(one)] == [[2]]
    lost = told.view.brokers[3].incarnation
    told.view.answered(lost, T0, is_lost=True)
    for one in (told, other):
        one.hear(led(1, 0, 1, isr=(1,), to=()))
        assert [state["OfflineReplicas"] for state in states_of(one)] == [[2, 3]]
    told.view.answered(lost, T0, is_lost=False)
    for one in (told, other):
        one.hear(led(1, 0, 2, isr=(1,), to=()))
        assert [state["OfflineReplicas"] for state in states_of(one)] == [[2]]


def test_few_descriptions_are_kept(monkeypatch: Any) -> None:
    monkeypatch.setattr(partition_states, "KEPT_MAX", 2)
    states = PartitionStates(ClusterView(), 7, IBP_2_6)
    decisions = [led(partition=number) for number in range(5)]
    for _ in range(2):
        made = [states.metadata(Place("t", one.partition), one, 0) for one in decisions]
        assert len(set(made)) == 5
    newer = replace(decisions[4], leader=2)
    assert states.metadata(Place("t", 4), newer, 0) != made[4]


def test_a_part_is_made_once_until_something_is_decided() -> None:
    view = ClusterView()
    states = PartitionStates(view, 7, IBP_3_9)
    for decision in (led(), led(partition=1), broker(1), broker(2), broker(3)):
        view.apply(decision)
    places = (T0, Place("t", 1), Place("t", 2))
    part = states.part(places)
    assert [place for place, _, _ in part.known] == [T0, Place("t", 1)]
    # Brokers name the same places, each with tuples of its own.
    assert states.part((Place("t", 0), Place("t", 1), Place("t", 2))) is part
    assert states.topics_of(part) is states.topics_of(part)
    view.note_version(T0, 4)
    assert [version for _, _, version in states.part(places).known] == [4, 0]
    before = states.topics_of(part)
    view.apply(broker(2, "fenced"))
    assert states.topics_of(part) != before
    view.apply(led(2, 1, 1, partition=2))
    assert [place for place, _, _ in states.part(places).known] == list(places)
    assert len(part.known) == 2
