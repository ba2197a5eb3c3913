"""Metadata: the leaders and the brokers' addresses, from the decisions."""

from brokers.mock.apis.context import Context
from brokers.wire.catalogue import Request, Values
from brokers.wire.errors import ErrorCode
from brokers.wire.layout import ZERO_UUID
from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER

CLUSTER_ID = "isrflow"
NO_CONTROLLER = -1


async def metadata(context: Context, request: Request) -> Values:
    """Answer a Metadata request. It never creates a topic."""
    return {
        "Brokers": _brokers(context),
        "ClusterId": CLUSTER_ID,
        "ControllerId": _a_live_broker(context),
        "Topics": [_topic(context, request, name, topic_id) for name, topic_id in _wanted_topics(context, request)],
    }


def _wanted_topics(context: Context, request: Request) -> list[tuple[str | None, str]]:
    """List the requested topics, by name or id. Null stands for all topics, and so does an empty list in version 0."""
    topics = request.values["Topics"]
    if topics is None or (request.version == 0 and not topics):
        return [(name, ZERO_UUID) for name in sorted(context.metadata.topics)]
    return [(topic["Name"] or context.metadata.topic_of(topic["TopicId"]), topic["TopicId"]) for topic in topics]


def _brokers(context: Context) -> list[Values]:
    live = [b for b in context.metadata.brokers.values() if context.metadata.live(b.broker) and b.listeners]
    return [
        {"NodeId": b.broker, "Host": b.listeners[0].host, "Port": b.listeners[0].port, "Rack": b.rack}
        for b in sorted(live, key=lambda b: b.broker)
    ]


def _a_live_broker(context: Context) -> int:
    """Name a live broker as the controller, as KRaft brokers do, because the real controller serves no clients."""
    return min((b for b in context.metadata.brokers if context.metadata.live(b)), default=NO_CONTROLLER)


def _topic(context: Context, request: Request, name: str | None, topic_id: str) -> Values:
    known = context.metadata.topics.get(name) if name is not None else None
    if known is None or known.state != "created":
        by_id = name is None and topic_id != ZERO_UUID
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {
            "ErrorCode": error,
            "Name": name or (None if request.version >= 12 else ""),
            "TopicId": topic_id,
            "Partitions": [],
        }
    partitions = context.metadata.partitions.get(known.topic, {})
    return {
        "Name": known.topic,
        "TopicId": known.topic_id,
        "Partitions": [_partition(context, request, partitions[number]) for number in sorted(partitions)],
    }


def _partition(context: Context, request: Request, decision: LeaderAndIsr) -> Values:
    has_leader = decision.leader != NO_LEADER and context.metadata.live(decision.leader) is not None
    replicas, isr = list(decision.replicas), list(decision.isr)
    error = ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE
    if request.version == 0:
        # Clients of version 0 look up every id among the brokers of the answer, so they are told of live brokers only.
        replicas, isr = ([r for r in ids if context.metadata.live(r) is not None] for ids in (replicas, isr))
        if has_leader and (len(replicas) < len(decision.replicas) or len(isr) < len(decision.isr)):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    return {
        "ErrorCode": error,
        "PartitionIndex": decision.partition,
        "LeaderId": decision.leader if has_leader else NO_LEADER,
        "LeaderEpoch": decision.leader_epoch,
        "ReplicaNodes": replicas,
        "IsrNodes": isr,
        "OfflineReplicas": [r for r in decision.replicas if context.metadata.live(r) is None],
    }
