"""Admins' requests about replicas and leaders (reassignments and elections)."""

from collections.abc import Sequence
from typing import Literal

from brokers.gateways.shared.apis.asking import Asking, KnownPartition, NamedTopic, error_of, text
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import PartitionResult
from state.events import AlterReassignment, ElectLeaders, TopicPartition
from state.topic_name import has_length_of_a_topic

_TYPES: dict[int, Literal["preferred", "unclean"]] = {0: "preferred", 1: "unclean"}


async def alter_partition_reassignments(context: Asking, request: Request, peer: Peer) -> Values:
    """Begin or cancel reassignments, each partition independently."""
    requested = [(topic["Name"], one) for topic in request.values["Topics"] for one in topic["Partitions"]]
    may_resize = request.values["AllowReplicationFactorChange"]
    refused = [_refusal(context, name, one, may_resize) for name, one in requested]
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
    responses = (
        refusal or {"PartitionIndex": one["PartitionIndex"]} | error_of(next(answers))
        for (_, one), refusal in zip(requested, refused, strict=True)
    )
    return {
        "AllowReplicationFactorChange": may_resize,
        "ErrorMessage": None,
        "Responses": [
            {"Name": topic["Name"], "Partitions": [next(responses) for _ in topic["Partitions"]]}
            for topic in request.values["Topics"]
        ],
    }


def _refusal(context: Asking, name: str, one: Values, may_resize: bool) -> Values | None:
    """Refuse names and numbers that no event may have, and a changed number of replicas if that is not allowed."""
    number, unknown = one["PartitionIndex"], [broker for broker in one["Replicas"] or () if broker < 0]
    if not _may_exist(name, number):
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {name}-{number}"
    elif unknown:
        error, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"there are no brokers {unknown}"
    elif not may_resize and (message := _resized(context, name, one)):
        error = ErrorCode.INVALID_REPLICATION_FACTOR
    else:
        return None
    return {"PartitionIndex": number, "ErrorCode": error, "ErrorMessage": message}


def _may_exist(topic: str, partition: int) -> bool:
    return has_length_of_a_topic(topic) and partition >= 0


def _resized(context: Asking, name: str, one: Values) -> str:
    """Return how a partition's number of replicas would change (KIP-860); an empty text if it would not."""
    topic = context.topic_named(name)
    held = None if topic is None else topic.partitions.get(one["PartitionIndex"])
    if held is None or one["Replicas"] is None:
        return ""
    wanted, size = len(one["Replicas"]), len(held.replicas) - len(held.removing_replicas)
    return "" if wanted == size else f"{wanted} replicas instead of {size}"


async def list_partition_reassignments(context: Asking, request: Request, peer: Peer) -> Values:
    """List the reassignments that are under way, of all partitions or of the named ones."""
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
        "Partitions": [
            _reassignment(number, one) for number, one in held if one.adding_replicas or one.removing_replicas
        ],
    }


def _reassignment(number: int, partition: KnownPartition) -> Values:
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
        return refusal_of(request, ErrorCode.INVALID_REQUEST, f"there is no election of type {body['ElectionType']}")
    named = [
        TopicPartition(one["Topic"], number) for one in body["TopicPartitions"] or () for number in one["Partitions"]
    ]
    partitions = tuple(one for one in named if _may_exist(one.topic, one.partition))
    event = ElectLeaders(
        time_ms=now_ms(),
        election_type=_TYPES[body["ElectionType"]],
        partitions=None if body["TopicPartitions"] is None else partitions,
    )
    [answer] = await context.ask_as_admin(request, [event])
    results = answer.results if isinstance(answer.results, tuple) else ()
    if answer.error != "NONE" and not results:
        return refusal_of(request, code_of(answer.error), text(answer))
    if body["TopicPartitions"] is None:
        return await context.offload(len(results), _held_elections, results)
    return await context.offload(len(named), _named_elections, body["TopicPartitions"], results)


def _held_elections(results: Sequence[PartitionResult]) -> Values:
    """Answer an election in all partitions, topic by topic."""
    topics: dict[str, list[Values]] = {}
    for one in results:
        topics.setdefault(one.topic, []).append(_election_response(one.partition, one))
    listed = [{"Topic": topic, "PartitionResult": responses} for topic, responses in topics.items()]
    return {"ReplicaElectionResults": listed}


def _named_elections(topics: Sequence[Values], results: Sequence[PartitionResult]) -> Values:
    """Answer as the request names the partitions. A partition that is named twice is answered twice."""
    of_partitions = {(one.topic, one.partition): one for one in results}
    listed = [
        {
            "Topic": named["Topic"],
            "PartitionResult": [
                _election_response(number, of_partitions.get((named["Topic"], number)))
                for number in named["Partitions"]
            ],
        }
        for named in topics
    ]
    return {"ReplicaElectionResults": listed}


def _election_response(number: int, result: PartitionResult | None) -> Values:
    """Show the result for one partition. The engine has none for names that no partition can have."""
    error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no partition has such a name"
    if result is not None:
        error, message = code_of(result.error), result.message
    return {"PartitionId": number, "ErrorCode": error, "ErrorMessage": message or None}
