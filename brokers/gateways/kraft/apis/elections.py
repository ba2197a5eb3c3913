"""Admins' requests about replicas and leaders (reassignments and elections)."""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal

from brokers.gateways.kraft.asking import Asking, NamedTopic, ReassignedPartition
from brokers.gateways.kraft.context import text
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.refusals import refusal_of
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import Answer, PartitionResult
from state.events import AlterReassignment, ElectLeaders, TopicPartition

_TYPES: dict[int, Literal["preferred", "unclean"]] = {0: "preferred", 1: "unclean"}


async def alter_partition_reassignments(context: Asking, request: Request, peer: Peer) -> Values:
    """Begin or cancel reassignments, each partition independently."""
    requested = [(topic["Name"], one) for topic in request.values["Topics"] for one in topic["Partitions"]]
    may_resize = request.values["AllowReplicationFactorChange"]
    refused = [None if may_resize else _resized(context, name, one) for name, one in requested]
    events = [
        AlterReassignment(
            time_ms=now_ms(),
            topic=name,
            partition=one["PartitionIndex"],
            replicas=None if one["Replicas"] is None else tuple(one["Replicas"]),
        )
        for (name, one), refusal in zip(requested, refused, strict=True)
        if refusal is None
    ]
    answers = iter(await context.ask_as_admin(request, events))
    responses = [
        (name, refusal or _reassignment_response(one, next(answers)))
        for (name, one), refusal in zip(requested, refused, strict=True)
    ]
    return {
        "AllowReplicationFactorChange": may_resize,
        "ErrorMessage": None,
        "Responses": _by_topic(responses, "Name", "Partitions"),
    }


def _reassignment_response(one: Values, answer: Answer) -> Values:
    return {
        "PartitionIndex": one["PartitionIndex"],
        "ErrorCode": code_of(answer.error),
        "ErrorMessage": text(answer),
    }


def _resized(context: Asking, name: str, one: Values) -> Values | None:
    """Refuse a changed number of replicas if the request does not allow it (KIP-860)."""
    topic = context.topic_named(name)
    held = None if topic is None else topic.partitions.get(one["PartitionIndex"])
    if held is None or one["Replicas"] is None:
        return None
    size = len(held.replicas) - len(held.removing_replicas)
    if len(one["Replicas"]) == size:
        return None
    return {
        "PartitionIndex": one["PartitionIndex"],
        "ErrorCode": ErrorCode.INVALID_REPLICATION_FACTOR,
        "ErrorMessage": f"{len(one['Replicas'])} replicas instead of {size}",
    }


def _by_topic(responses: list[tuple[str, Values]], name: str, partitions: str) -> list[Values]:
    groups = groupby(responses, key=lambda pair: pair[0])
    return [{name: topic, partitions: [values for _, values in group]} for topic, group in groups]


async def list_partition_reassignments(context: Asking, request: Request, peer: Peer) -> Values:
    """List the reassignments that are under way, of all partitions or of those named."""
    partitions = sum(len(topic.partitions) for topic in context.topics())
    return await context.offload(partitions, _listed, context, request.values["Topics"])


def _listed(context: Asking, named: list[Values] | None) -> Values:
    if named is None:
        topics = [(topic, sorted(topic.partitions)) for topic in context.topics()]
    else:
        found = [(context.topic_named(one["Name"]), one["PartitionIndexes"]) for one in named]
        topics = [(topic, numbers) for topic, numbers in found if topic is not None]
    listed = [_ongoing(topic, numbers) for topic, numbers in sorted(topics, key=lambda pair: pair[0].name)]
    return {"ErrorMessage": None, "Topics": [topic for topic in listed if topic["Partitions"]]}


def _ongoing(topic: NamedTopic, numbers: list[int]) -> Values:
    held = [(number, topic.partitions[number]) for number in numbers if number in topic.partitions]
    return {
        "Name": topic.name,
        "Partitions": [_reassignment(number, one) for number, one in held if _is_reassigned(one)],
    }


def _is_reassigned(partition: ReassignedPartition) -> bool:
    return bool(partition.adding_replicas or partition.removing_replicas)


def _reassignment(number: int, partition: ReassignedPartition) -> Values:
    return {
        "PartitionIndex": number,
        "Replicas": list(partition.replicas),
        "AddingReplicas": list(partition.adding_replicas),
        "RemovingReplicas": list(partition.removing_replicas),
    }


async def elect_leaders(context: Asking, request: Request, peer: Peer) -> Values:
    """Hold elections, preferred or unclean."""
    body = request.values
    if body["ElectionType"] not in _TYPES:
        return refusal_of(request, ErrorCode.INVALID_REQUEST)
    named = body["TopicPartitions"]
    partitions = None
    if named is not None:
        partitions = tuple(TopicPartition(one["Topic"], number) for one in named for number in one["Partitions"])
    event = ElectLeaders(time_ms=now_ms(), election_type=_TYPES[body["ElectionType"]], partitions=partitions)
    [answer] = await context.ask_as_admin(request, [event])
    results = answer.results if isinstance(answer.results, tuple) else ()
    if answer.error != "NONE" and not results:
        return refusal_of(request, code_of(answer.error), text(answer))
    return await context.offload(len(results), _election_response, results)


def _election_response(results: Sequence[PartitionResult]) -> Values:
    listed = [
        (
            one.topic,
            {"PartitionId": one.partition, "ErrorCode": code_of(one.error), "ErrorMessage": one.message or None},
        )
        for one in results
    ]
    return {"ReplicaElectionResults": _by_topic(listed, "Topic", "PartitionResult")}
