"""Admins' requests that make a topic's znode larger: CreateTopics, CreatePartitions, AlterPartitionReassignments.

A topic whose znode would be too large for ZooKeeper is refused. All others are requested as in KRaft mode.
"""

from collections.abc import Callable

import structlog

from brokers.gateways.shared.apis import elections, topics
from brokers.gateways.zk.apis.context import Context
from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.topic_size import (
    assigned_bytes,
    complaint_about,
    complaints_about_moves,
    placed_bytes,
    topic_bytes,
)
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from brokers.wire.server import Peer

logger = structlog.get_logger()

_DEFAULT = -1
_Size = Callable[[Context, Values], int]


async def create_topics(context: Context, request: Request, peer: Peer) -> Values:
    """Create topics independently."""
    request, refused = _split(context, request, _created)
    response = await topics.create_topics(context, request, peer)
    return response | {"Topics": [*response["Topics"], *refused]}


async def create_partitions(context: Context, request: Request, peer: Peer) -> Values:
    """Add partitions to topics independently."""
    request, refused = _split(context, request, _grown)
    response = await topics.create_partitions(context, request, peer)
    return response | {"Results": [*response["Results"], *refused]}


def _split(context: Context, request: Request, size: _Size) -> tuple[Request, list[Values]]:
    """Return the request without topics that would be too large, and the refusals of those topics."""
    refused: dict[str, Values] = {}
    for topic in request.values["Topics"]:
        name = topic["Name"]
        if (message := complaint_about(name, size(context, topic))) is not None:
            logger.warning("refused", api=request.name, topic=name, why=message)
            refused[name] = {"Name": name, "ErrorCode": ErrorCode.INVALID_PARTITIONS, "ErrorMessage": message}
    left = [topic for topic in request.values["Topics"] if topic["Name"] not in refused]
    return request._replace(values=request.values | {"Topics": left}), list(refused.values())


def _created(context: Context, topic: Values) -> int:
    if topic["Assignments"]:
        return assigned_bytes({one["PartitionIndex"]: one["BrokerIds"] for one in topic["Assignments"]})
    everywhere = len(context.view.brokers)
    partitions = _or_default(context, topic["NumPartitions"], "num.partitions", 1)
    factor = _or_default(context, topic["ReplicationFactor"], "default.replication.factor", everywhere)
    return placed_bytes(context.view, partitions, partitions, factor)


def _or_default(context: Context, asked: int, name: str, unknown: int) -> int:
    if asked != _DEFAULT:
        return asked
    value = context.settings_of_all_brokers().get(name, "")
    return int(value) if value.isdecimal() else unknown


def _grown(context: Context, topic: Values) -> int:
    held = context.view.topics.get(topic["Name"])
    if held is None:
        # The engine knows no such topic either, or not for long.
        return 0
    total, size = topic["Count"], topic_bytes(held)
    first = len(held.partitions)
    if topic["Assignments"]:
        given = {number: one["BrokerIds"] for number, one in enumerate(topic["Assignments"], first)}
        return size + assigned_bytes(given)
    factor = max((len(one.replicas) for one in held.partitions.values()), default=len(context.view.brokers))
    return size + placed_bytes(context.view, max(total - first, 0), total, factor)


async def alter_partition_reassignments(context: Context, request: Request, peer: Peer) -> Values:
    """Begin or cancel reassignments, each partition independently. A cancellation always fits."""
    asked = request.values["Topics"]
    moves = {
        Place(topic["Name"], one["PartitionIndex"]): one["Replicas"]
        for topic in asked
        for one in topic["Partitions"]
        if one["Replicas"] is not None
    }
    complaints = complaints_about_moves(context.view, moves)
    refused = [
        {"Name": topic["Name"], "Partitions": _refusals(topic, complaints[topic["Name"]])}
        for topic in asked
        if topic["Name"] in complaints
    ]
    for name, message in complaints.items():
        logger.warning("refused", api=request.name, topic=name, why=message)
    left = [topic if topic["Name"] not in complaints else _cancelled(topic) for topic in asked]
    values = request.values | {"Topics": [topic for topic in left if topic["Partitions"]]}
    response = await elections.alter_partition_reassignments(context, request._replace(values=values), peer)
    return response | {"Responses": [*response["Responses"], *refused]}


def _refusals(topic: Values, message: str) -> list[Values]:
    return [
        {"PartitionIndex": one["PartitionIndex"], "ErrorCode": ErrorCode.POLICY_VIOLATION, "ErrorMessage": message}
        for one in topic["Partitions"]
        if one["Replicas"] is not None
    ]


def _cancelled(topic: Values) -> Values:
    return topic | {"Partitions": [one for one in topic["Partitions"] if one["Replicas"] is None]}
