"""Metadata: the leaders, and where the brokers listen, from the decisions."""

from typing import Any

from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from brokers.mock.apis.context import Context
from brokers.mock.metadata import NO_TOPIC_ID, uuid_of
from brokers.wire.errors import ErrorCode
from brokers.wire.messages import Request, api
from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER

API = api(MetadataRequest, MetadataResponse, (0, 12))
CLUSTER_ID = "isrflow"
NO_CONTROLLER = -1


async def metadata(context: Context, request: Request) -> Any:
    """Answer a Metadata request; asking for a topic never creates it."""
    topics = [_topic(context, request, name, topic_id) for name, topic_id in _wanted_topics(context, request)]
    return request.answer(
        throttle_time_ms=0,
        brokers=_brokers(context, request),
        cluster_id=CLUSTER_ID,
        controller_id=_a_live_broker(context),
        topics=topics,
    )


def _wanted_topics(context: Context, request: Request) -> list[tuple[str | None, Any]]:
    """List the topics asked for by name or id; all topics for null, and in version 0 for an empty list."""
    topics = request.body.topics
    if topics is None or (request.version == 0 and not topics):
        return [(name, None) for name in sorted(context.metadata.topics)]
    return [(topic.name or context.metadata.topic_of(topic.topic_id), topic.topic_id) for topic in topics]


def _brokers(context: Context, request: Request) -> list[Any]:
    live = [b for b in context.metadata.brokers.values() if context.metadata.live(b.broker) and b.listeners]
    broker = MetadataResponse.MetadataResponseBroker
    return [
        broker(
            version=request.version, node_id=b.broker, host=b.listeners[0].host, port=b.listeners[0].port, rack=b.rack
        )
        for b in sorted(live, key=lambda b: b.broker)
    ]


def _a_live_broker(context: Context) -> int:
    """Name any live broker as the controller, as KRaft brokers do, because the real one serves no clients."""
    return min((b for b in context.metadata.brokers if context.metadata.live(b)), default=NO_CONTROLLER)


def _topic(context: Context, request: Request, name: str | None, topic_id: Any) -> Any:
    topic = MetadataResponse.MetadataResponseTopic
    known = context.metadata.topics.get(name) if name is not None else None
    if known is None or known.state != "created":
        by_id = name is None and topic_id not in (None, NO_TOPIC_ID)
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return topic(
            version=request.version,
            error_code=int(error),
            name=name or (None if request.version >= 12 else ""),
            topic_id=topic_id or NO_TOPIC_ID,
            is_internal=False,
            partitions=[],
        )
    partitions = context.metadata.partitions.get(known.topic, {})
    return topic(
        version=request.version,
        error_code=0,
        name=known.topic,
        topic_id=uuid_of(known.topic_id),
        is_internal=False,
        partitions=[_partition(context, request, partitions[number]) for number in sorted(partitions)],
    )


def _partition(context: Context, request: Request, decision: LeaderAndIsr) -> Any:
    has_leader = decision.leader != NO_LEADER and context.metadata.live(decision.leader) is not None
    replicas, isr = list(decision.replicas), list(decision.isr)
    error = ErrorCode.NONE if has_leader else ErrorCode.LEADER_NOT_AVAILABLE
    if request.version == 0:
        # Version 0 clients look up every id among the brokers of the answer, so they are told of live brokers only.
        replicas, isr = ([r for r in ids if context.metadata.live(r) is not None] for ids in (replicas, isr))
        if has_leader and (len(replicas) < len(decision.replicas) or len(isr) < len(decision.isr)):
            error = ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponse.MetadataResponseTopic.MetadataResponsePartition(
        version=request.version,
        error_code=int(error),
        partition_index=decision.partition,
        leader_id=decision.leader if has_leader else NO_LEADER,
        leader_epoch=decision.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=[r for r in decision.replicas if context.metadata.live(r) is None],
    )
