"""From a batch to requests, in the order of Kafka's ``AbstractControllerBrokerRequestBatch``.

A broker makes no fetcher for a leader that it does not know to be alive, and says so only in its log. So the live
brokers come first, then the leaders, then the metadata for every broker, then the replicas that stop. Every
UpdateMetadata request replaces the whole list of live brokers, so each one has all of them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple, TypeVar

from brokers.gateways.shared.security_protocols import PROTOCOLS
from brokers.gateways.zk.channels.requests.partition_states import MetadataPart, PartitionStates
from brokers.gateways.zk.channels.requests.pending import Batch
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA, Versions
from brokers.wire.schema import Encoded, Values
from state.decisions import BrokerDecision, LeaderAndIsr, StopReplica
from state.ids import EPOCH_DURING_DELETE, NO_LEADER
from state.registration import Listener

PARTITIONS_PER_REQUEST_MAX = 2_000
# The most partitions in the first LeaderAndIsr request to a broker, which need not make their logs.
FIRST_PARTITIONS_MAX = 20_000

T = TypeVar("T")
# A partition of a LeaderAndIsr request, and whether the broker's replica is new.
Role = tuple[Place, LeaderAndIsr, bool]


class Sender(NamedTuple):
    """The gateway as brokers know their controller."""

    controller: int
    controller_epoch: int
    # Where brokers and clients reach it as the controller.
    listener: Listener
    # The name of the listener on which brokers talk to each other.
    inter_broker_listener: str
    # The versions of its requests.
    versions: Versions


class Told(NamedTuple):
    """What a request said about one partition, for reading the code in its answer."""

    topic_id: str
    leader_epoch: int
    leads: bool = False
    delete: bool = False


class Outgoing(NamedTuple):
    """One request to a broker; ``told`` has the partitions of a LeaderAndIsr or StopReplica request."""

    api_key: int
    values: Values
    told: Mapping[Place, Told]


# The newest (topic id, leader epoch) that a broker has answered for each partition.
Answered = dict[Place, tuple[str, int]]


def requests_of(
    batch: Batch, broker: BrokerDecision, view: ClusterView, states: PartitionStates, sender: Sender, answered: Answered
) -> Iterator[Outgoing]:
    """Return the requests that tell ``batch`` to a broker, as ``view`` is now. ``states`` describes the partitions.

    Each request is made when it is taken, because together they may have hundreds of thousands of partitions. All of
    them name the leaders at the time of this call, so none names a leader that the broker does not yet know to be
    alive. A partition whose leader epoch the broker has answered is left out, because the broker would refuse it.
    """
    held = {place: found for place in batch.leader_and_isr if (found := view.partition(place)) is not None}
    news = [
        (place, decision, batch.leader_and_isr[place])
        for place, decision in held.items()
        if broker.broker in decision.replicas and _is_news(decision, answered.get(place))
    ]
    parts = [states.part(tuple(places)) for places in _parts(batch.metadata)]
    building = _Building(broker, view, states, sender, chain(held.values(), batch.deleted.values()))
    return _built(building, batch, _told_together(news, is_first=not answered), parts)


def _built(
    building: "_Building", batch: Batch, news: Iterable[Sequence[Role]], parts: Iterable[MetadataPart]
) -> Iterator[Outgoing]:
    if batch.live or batch.deleted:
        # At least one request, because the list of live brokers may have changed.
        for gone in list(_parts(list(batch.deleted.items()))) or [()]:
            yield building.deleted(dict(gone))
    for part in news:
        yield building.leader_and_isr(part)
    for some in parts:
        if some.known:
            yield building.metadata(some)
    for stops in _parts(list(batch.stops.items())):
        yield building.stop(stops)


def _told_together(news: Sequence[Role], *, is_first: bool) -> Iterator[Sequence[Role]]:
    """Divide partitions among LeaderAndIsr requests. The first request to a broker has all the logs that it holds.

    With that request the broker begins to checkpoint the high watermarks of the replicas in it, and forgets its
    checkpoints of all others (``ReplicaManager.startHighWatermarkCheckPointThread``).
    """
    if not is_first:
        return _parts(news)
    held = [one for one in news if not one[2]]
    return chain(_parts(held, FIRST_PARTITIONS_MAX), _parts([one for one in news if one[2]]))


def _is_news(decision: LeaderAndIsr, answered: tuple[str, int] | None) -> bool:
    return answered is None or answered[0] != decision.topic_id or answered[1] < decision.leader_epoch


def _parts(items: Iterable[T], count_max: int = PARTITIONS_PER_REQUEST_MAX) -> Iterator[Sequence[T]]:
    left = iter(items)
    while part := list(islice(left, count_max)):
        yield part


class _Building:
    def __init__(
        self,
        broker: BrokerDecision,
        view: ClusterView,
        states: PartitionStates,
        sender: Sender,
        told: Iterable[LeaderAndIsr],
    ) -> None:
        self._broker = broker
        self._states = states
        self._sender = sender
        self._live = {held.broker: held for held in view.live}
        self._versions = {Place(one.topic, one.partition): view.version(one) for one in told} if view.versions else {}
        self._common: Values = {
            "ControllerId": sender.controller,
            "ControllerEpoch": sender.controller_epoch,
            # As the broker knows it: the transaction that made its znode, which is its incarnation here.
            "BrokerEpoch": int(broker.incarnation),
        }

    def _version(self, place: Place, decision: LeaderAndIsr) -> int:
        return self._versions.get(place, decision.partition_epoch)

    def leader_and_isr(self, part: Sequence[Role]) -> Outgoing:
        leaders = sorted({decision.leader for _, decision, _ in part} - {NO_LEADER})
        live = [self._leader(leader) for leader in leaders if leader in self._live and self._live[leader].listeners]
        role = self._states.role
        states = [
            (place.topic, decision.topic_id, role(place, decision, self._version(place, decision), is_new))
            for place, decision, is_new in part
        ]
        values = self._common | {"LiveLeaders": live, "TopicStates": self._states.by_topic(LEADER_AND_ISR, states)}
        told = {
            place: Told(decision.topic_id, decision.leader_epoch, leads=decision.leader == self._broker.broker)
            for place, decision, _ in part
        }
        return Outgoing(LEADER_AND_ISR, values, told)

    def _leader(self, leader: int) -> Values:
        found = listener_named(self._live[leader].listeners, self._sender.inter_broker_listener)
        return {"BrokerId": leader, "HostName": found.host, "Port": found.port}

    def metadata(self, part: MetadataPart) -> Outgoing:
        return self._update(self._states.topics_of(part))

    def deleted(self, part: Mapping[Place, LeaderAndIsr]) -> Outgoing:
        states = [
            (place.topic, decision.topic_id, self._states.deleted(place, decision, self._version(place, decision)))
            for place, decision in part.items()
        ]
        return self._update(self._states.by_topic(UPDATE_METADATA, states))

    def _update(self, topics: Sequence[Encoded]) -> Outgoing:
        live = [
            {"Id": held.broker, "Endpoints": _endpoints(held.listeners), "Rack": held.rack}
            for held in self._live.values()
        ]
        endpoints = _endpoints([self._sender.listener])
        live.append({"Id": self._sender.controller, "Endpoints": endpoints, "Rack": _rack_among(self._live.values())})
        return Outgoing(UPDATE_METADATA, self._common | {"TopicStates": topics, "LiveBrokers": live}, {})

    def stop(self, part: Sequence[tuple[Place, StopReplica]]) -> Outgoing:
        topics: dict[str, list[Values]] = {}
        for place, stop in part:
            epoch = EPOCH_DURING_DELETE if stop.delete and stop.leader_epoch < 0 else stop.leader_epoch
            values = {"PartitionIndex": place.partition, "LeaderEpoch": epoch, "DeletePartition": stop.delete}
            topics.setdefault(place.topic, []).append(values)
        states = [{"TopicName": topic, "PartitionStates": partitions} for topic, partitions in topics.items()]
        told = {place: Told(stop.topic_id, stop.leader_epoch, delete=stop.delete) for place, stop in part}
        return Outgoing(STOP_REPLICA, self._common | {"TopicStates": states}, told)


def listener_named(listeners: Sequence[Listener], name: str) -> Listener:
    """Return the listener of a name, or the first one."""
    return next((one for one in listeners if one.name == name), listeners[0])


def _rack_among(live: Collection[BrokerDecision]) -> str | None:
    """Return the rack of the gateway: one of the brokers' racks if all of them have one.

    A broker that makes an internal topic counts the gateway among the brokers, and makes no topic if some brokers have
    a rack and others have none (``AdminUtils.assignReplicasToBrokers``).
    """
    racks = [held.rack for held in live if held.rack is not None]
    return racks[0] if racks and len(racks) == len(live) else None


def _endpoints(listeners: Iterable[Listener]) -> list[Values]:
    return [
        {"Port": one.port, "Host": one.host, "Listener": one.name, "SecurityProtocol": PROTOCOLS[one.protocol]}
        for one in listeners
        if one.protocol in PROTOCOLS
    ]
