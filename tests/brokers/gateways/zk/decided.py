"""Decisions for tests of a gateway to ZooKeeper-mode brokers. A broker's incarnation is its epoch in ZooKeeper."""

from collections.abc import Sequence
from typing import Any

from brokers.gateways.zk.channels.requests.building import Answered, Outgoing, Sender, requests_of
from brokers.gateways.zk.channels.requests.news import News
from brokers.gateways.zk.channels.requests.partition_states import PartitionStates
from brokers.gateways.zk.channels.requests.pending import Pending
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.messages import CATALOGUE, IBP_2_6, IBP_3_9
from state.decisions import AnyDecision, BrokerDecision, LeaderAndIsr, StopReplica, TopicDecision
from state.reason import Reason
from state.registration import Listener

ID, OTHER_ID = "aaaaaaaaaaaaaaaaaaaaaQ", "bbbbbbbbbbbbbbbbbbbbbQ"
HERE = Listener("PLAINTEXT", "gateway", 9_100)
SENDER = Sender(100, 7, HERE, "PLAINTEXT", IBP_3_9)
SENDERS = (SENDER, SENDER._replace(versions=IBP_2_6))


def common(reason: Reason = Reason.REQUEST_DONE) -> dict[str, Any]:
    return {"seq": 9, "controller_epoch": 3, "time_ms": 1_000, "reason": reason}


def broker(number: int, state: str = "active", epoch: int = 0) -> BrokerDecision:
    return BrokerDecision(
        **common(),
        broker=number,
        broker_epoch=10 * number + epoch,
        incarnation=str(1_000 * number + epoch),
        state=state,
        rack=None,
        listeners=(Listener("PLAINTEXT", f"host-{number}", 9_092),),
    )


def topic(state: str = "created", topic_id: str = ID, **config: str) -> TopicDecision:
    return TopicDecision(**common(), topic="t", topic_id=topic_id, state=state, config=config)


def led(leader: int = 1, leader_epoch: int = 0, partition_epoch: int = 0, **fields: Any) -> LeaderAndIsr:
    values: dict[str, Any] = {
        "topic": "t",
        "topic_id": ID,
        "partition": 0,
        "leader": leader,
        "isr": (1, 2, 3),
        "replicas": (1, 2, 3),
        "adding_replicas": (),
        "removing_replicas": (),
        "leader_recovery_state": "RECOVERED",
        "is_new": False,
        "unclean": False,
        "to": (1, 2, 3),
    }
    reason = fields.pop("reason", Reason.REQUEST_DONE)
    times = {"leader_epoch": leader_epoch, "partition_epoch": partition_epoch}
    return LeaderAndIsr(**common(reason), **(values | times | fields))


def stop(*to: int, delete: bool = True, leader_epoch: int = -2, **fields: Any) -> StopReplica:
    values = {"topic": "t", "topic_id": ID, "partition": 0}
    return StopReplica(**common(), delete=delete, leader_epoch=leader_epoch, to=to, **(values | fields))


class Told:
    """One broker, and what it would be sent next."""

    def __init__(self, number: int = 1, partitions_max: int = 1_000, sender: Sender = SENDER) -> None:
        self.view = ClusterView()
        self.pending = Pending(partitions_max, 1 << 26)
        self.answered: Answered = {}
        self.states = PartitionStates(self.view, sender.controller_epoch, sender.versions)
        self._number = number
        self._sender = sender

    def hear(self, *decisions: AnyDecision) -> None:
        """Take the decisions on one event in."""
        for decision in decisions:
            self.view.apply(decision)
        self.pending.tell(self._number, News(decisions, self.view))

    def sent(self) -> list[Outgoing]:
        """Return everything that is sent by now, as if the broker answered at once."""
        sent: list[Outgoing] = []
        while (batch := self.pending.take()) is not None:
            known = self.view.brokers[self._number]
            for request in requests_of(batch, known, self.view, self.states, self._sender, self.answered):
                sent.append(received(request, self._sender))
                if request.api_key == 4:
                    self.answered |= {place: (t.topic_id, t.leader_epoch) for place, t in request.told.items()}
        return sent


def encode(request: Outgoing, sender: Sender) -> bytes:
    return CATALOGUE.encode_request(request.api_key, sender.versions.of(request.api_key), 1, "gateway", request.values)


def received(request: Outgoing, sender: Sender) -> Outgoing:
    """Return a request as a broker reads it."""
    return request._replace(values=CATALOGUE.decode_request(encode(request, sender)).values)


def lines(requests: Sequence[Outgoing]) -> list[str]:
    """Write requests as a reader of this test would: what each says about which partition."""
    return [_line(request) for request in requests]


def _line(request: Outgoing) -> str:
    name = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata"}[request.api_key]
    live = [str(one["Id"]) for one in request.values.get("LiveBrokers", ())]
    states = [
        f"{topic['TopicName']}-{one['PartitionIndex']}{_state(one)}"
        for topic in request.values["TopicStates"]
        for one in topic["PartitionStates"]
    ]
    return " ".join([name, *([f"live={','.join(live)}"] if live else []), *states])


def _state(one: dict[str, Any]) -> str:
    if "DeletePartition" in one:
        return f":{'delete' if one['DeletePartition'] else 'stop'}"
    return f":{one['Leader']}@{one['LeaderEpoch']}{' new' if one.get('IsNew') else ''}"


T0 = Place("t", 0)
