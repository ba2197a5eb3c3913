"""A broker that obeys the requests knows what the rules know, whatever they decide and however slow it is."""

from typing import Any

from hypothesis import example, given, settings
from msgspec.structs import replace

from brokers.gateways.zk.channels.requests.building import Answered, Outgoing, requests_of
from brokers.gateways.zk.channels.requests.news import Everything, News
from brokers.gateways.zk.channels.requests.partition_states import LEADER_DURING_DELETE, PartitionStates
from brokers.gateways.zk.channels.requests.pending import Pending
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import IBP_2_6, LEADER_AND_ISR, STOP_REPLICA
from brokers.gateways.zk.mirror.mirror import Mirror, changes_in
from brokers.wire.schema import Values
from state.canonical import number
from state.cluster import Outcome
from state.decisions import AnyDecision, BrokerDecision, decode
from state.part import part_of
from state.policy import Policy
from tests.brokers.gateways.zk.decided import HERE, SENDER, SENDERS, received
from tests.support.random_logs import draws, walk

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1)
PARTITIONS_MAX = 60
# How many events each broker lets pass before it takes its requests.
EVERY = (1, 3, 17, 40)


def decided(outcome: Outcome) -> list[AnyDecision]:
    """Return an event's decisions as they are for brokers in ZooKeeper, whose incarnations are numbers."""
    decisions = [decode(body) for _, _, body in number([part_of(decision) for decision in outcome.decisions])]
    return [_known(one) if isinstance(one, BrokerDecision) else one for one in decisions]


def _known(broker: BrokerDecision) -> BrokerDecision:
    return replace(broker, incarnation=str(broker.broker_epoch), listeners=(HERE,))


class Broker:
    """What one run of a broker of Kafka 3.9 knows, and what its gateway has yet to tell it."""

    def __init__(self, number: int) -> None:
        self.number = number
        # All versions of requests are written.
        self.sender = SENDERS[number % len(SENDERS)]
        self.live: set[int] = set()
        self.metadata: dict[Place, tuple[str, Values]] = {}
        # The logs that it has, with the ids of their topics.
        self.logs: dict[Place, tuple[str, int]] = {}
        self.pending = Pending(PARTITIONS_MAX, 1 << 20)
        self.answered: Answered = {}

    def take_requests(self, view: ClusterView, states: PartitionStates) -> None:
        """Obey everything that the gateway has for this broker."""
        held = view.brokers[self.number]
        if self.pending.is_overfull:
            self.pending.tell_all(self.number, Everything(view))
        while (batch := self.pending.take()) is not None:
            for request in requests_of(batch, held, view, states, self.sender, self.answered):
                self._obey(received(request, self.sender))

    def _obey(self, request: Outgoing) -> None:
        if "LiveBrokers" in request.values:
            self.live = {one["Id"] for one in request.values["LiveBrokers"]}
        for topic in request.values["TopicStates"]:
            for state in topic["PartitionStates"]:
                place = Place(topic["TopicName"], state["PartitionIndex"])
                if request.api_key == LEADER_AND_ISR:
                    self._follow(place, request.told[place].topic_id, state, request)
                elif request.api_key == STOP_REPLICA:
                    if state["DeletePartition"]:
                        self.logs.pop(place, None)
                        self.answered.pop(place, None)
                elif state["Leader"] == LEADER_DURING_DELETE:
                    self.metadata.pop(place, None)
                else:
                    self.metadata[place] = (topic["TopicId"], state)

    def _follow(self, place: Place, topic_id: str, state: dict[str, Any], request: Outgoing) -> None:
        assert state["Leader"] < 0 or state["Leader"] in self.live, "a leader that the broker does not know to live"
        former_id, former_epoch = self.logs.get(place, (topic_id, -1))
        assert former_id == topic_id, "another topic of the same name still has its log"
        assert state["LeaderEpoch"] > former_epoch, "a leader epoch that the broker has heard"
        self.logs[place] = (topic_id, state["LeaderEpoch"])
        self.answered[place] = (topic_id, request.told[place].leader_epoch)


# A deletion waits for a move while no partition has a leader, and then one gets a leader again.
WAITING = [*[("register", 0, 0, 0)] * 26, ("create", 0, 0, 0), ("second_move", 0, 1, 2), ("delete", 0, 0, 0)]


@settings(max_examples=40, deadline=None)
@given(draws(max_size=60))
@example([*WAITING, ("beat", 1, 0, 0)])
def test_brokers_know_what_the_rules_decided(drawn: list[tuple[str, int, int, int]]) -> None:
    view = ClusterView()
    # As in a term, brokers that are told in the same versions share the descriptions of partitions.
    states = [PartitionStates(view, one.controller_epoch, one.versions) for one in SENDERS]
    brokers: dict[tuple[int, int], Broker] = {}
    mirror = Mirror()
    for step, (_, _, outcome) in enumerate(walk(drawn, POLICY)):
        decisions = decided(outcome)
        for decision in decisions:
            view.apply(decision)
        list(mirror.writes(view, changes_in(decisions), SENDER.controller_epoch))
        # What a decision changes is all that ZooKeeper lacks.
        everything = dict.fromkeys(sorted(mirror.topics | view.topics.keys()))
        assert list(mirror.writes(view, everything, SENDER.controller_epoch)) == []
        now = {(held.broker, held.broker_epoch) for held in view.live}
        brokers = {key: found for key, found in brokers.items() if key in now}
        news = News(decisions, view)
        for key, held in brokers.items():
            held.pending.tell(key[0], news)
        for key in now - brokers.keys():
            brokers[key] = Broker(key[0])
            brokers[key].pending.tell_all(key[0], Everything(view))
        for key, held in brokers.items():
            # Some are slow, and hear of many events at once.
            if step % EVERY[key[0] % len(EVERY)] == 0:
                held.take_requests(view, states[held.number % len(SENDERS)])
    for held in brokers.values():
        held.take_requests(view, states[held.number % len(SENDERS)])
        check(held, view)


def check(broker: Broker, view: ClusterView) -> None:
    assert broker.live == {held.broker for held in view.live} | {SENDER.controller}
    shown = {place for place in view.places() if not view.topics[place.topic].is_deleting}
    assert broker.metadata.keys() == shown
    for place in shown:
        decision = view.partition(place)
        assert decision is not None
        topic_id, state = broker.metadata[place]
        # Older versions do not carry the ids of topics.
        assert topic_id == decision.topic_id or broker.sender.versions == IBP_2_6
        assert (state["Leader"], state["LeaderEpoch"], state["Isr"], state["ZkVersion"]) == (
            decision.leader,
            decision.leader_epoch,
            list(decision.isr),
            decision.partition_epoch,
        )
        if decision.leader == broker.number:
            assert broker.logs[place] == (decision.topic_id, decision.leader_epoch), "a leader that was not told"
