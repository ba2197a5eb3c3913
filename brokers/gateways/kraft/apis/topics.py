"""Admins' requests about topics (CreateTopics, DeleteTopics, CreatePartitions)."""

from collections import Counter

from brokers.gateways.kraft.apis.metadata_fetch import METADATA_TOPIC
from brokers.gateways.kraft.asking import Asking, NamedTopic
from brokers.gateways.kraft.context import text
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.slices import in_slices
from brokers.gateways.kraft.topic_settings import complaint_about
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import Answer
from state.events import CreatePartitions, CreateTopic, DeleteTopic

_NO_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAA"
# Kafka's Topic.MAX_NAME_LENGTH.
NAME_LENGTH_MAX = 249


async def create_topics(context: Asking, request: Request, peer: Peer) -> Values:
    """Create topics independently: one that is refused does not affect the others."""
    body = request.values
    times = Counter(topic["Name"] for topic in body["Topics"])
    # A topic that is named twice is answered once.
    outcomes: dict[str, Values] = {}
    requested: list[CreateTopic] = []
    async for topic in in_slices(body["Topics"]):
        refusal = _refusal(topic, times[topic["Name"]])
        outcomes[topic["Name"]] = refusal or {}
        if refusal is None:
            requested.append(_creation(topic, body["validateOnly"]))
    answers = await context.ask_as_admin(request, requested)
    async for event, answer in in_slices(zip(requested, answers, strict=True)):
        outcomes[event.topic] = _creation_response(event.topic, answer)
    return {"Topics": list(outcomes.values())}


def _refusal(topic: Values, times: int) -> Values | None:
    """Refuse a topic without asking the engine, as Kafka's controller does; None if the engine must decide."""
    name = topic["Name"]
    error = ErrorCode.INVALID_REQUEST
    if times > 1:
        message = f"{name} is named {times} times"
    elif name == METADATA_TOPIC:
        # Brokers keep the metadata log under this name.
        message = f"{name} is reserved for the metadata log"
    elif complaints := [wrong for one in topic["Configs"] if (wrong := complaint_about(one["Name"], one["Value"]))]:
        error, message = ErrorCode.INVALID_CONFIG, complaints[0]
    elif len({one["PartitionIndex"] for one in topic["Assignments"]}) < len(topic["Assignments"]):
        error, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{name}: a partition is assigned twice"
    else:
        return None
    return {"Name": name, "ErrorCode": error, "ErrorMessage": message}


def _creation(topic: Values, validate_only: bool) -> CreateTopic:
    assignment = {str(one["PartitionIndex"]): tuple(one["BrokerIds"]) for one in topic["Assignments"]}
    return CreateTopic(
        time_ms=now_ms(),
        topic=topic["Name"],
        partitions=topic["NumPartitions"],
        replication_factor=topic["ReplicationFactor"],
        assignment=assignment or None,
        config={one["Name"]: one["Value"] for one in topic["Configs"]},
        validate_only=validate_only,
    )


def _creation_response(name: str, answer: Answer) -> Values:
    response: Values = {"Name": name, "ErrorCode": code_of(answer.error), "ErrorMessage": text(answer)}
    if answer.error == "NONE" and isinstance(answer.assignment, dict):
        replicas = list(answer.assignment.values())
        response |= {"NumPartitions": len(replicas), "ReplicationFactor": len(replicas[0]), "Configs": []}
        if isinstance(answer.topic_id, str):
            response["TopicId"] = answer.topic_id
    return response


async def delete_topics(context: Asking, request: Request, peer: Peer) -> Values:
    """Delete topics by name or by id.

    The engine is also asked about names that the metadata log no longer has: their deletion may be unfinished, and is
    tried again.
    """
    requested = [(name, _NO_TOPIC_ID) for name in request.values["TopicNames"]]
    requested += [(one["Name"], one["TopicId"]) for one in request.values["Topics"]]
    found = [context.topic(topic_id) if name is None else context.topic_named(name) for name, topic_id in requested]
    events = [_deletion(name, topic) for (name, _), topic in zip(requested, found, strict=True)]
    answers = iter(await context.ask_as_admin(request, [event for event in events if event is not None]))
    responses = [
        _deletion_response(one, topic, None if event is None else next(answers))
        for one, topic, event in zip(requested, found, events, strict=True)
    ]
    return {"Responses": responses}


def _deletion(name: str | None, topic: NamedTopic | None) -> DeleteTopic | None:
    """Return the event that requests a topic's deletion; None if the request can mean no topic."""
    if name is None:
        return None if topic is None else DeleteTopic(time_ms=now_ms(), topic=topic.name, topic_id=topic.topic_id)
    return DeleteTopic(time_ms=now_ms(), topic=name) if 0 < len(name) <= NAME_LENGTH_MAX else None


def _deletion_response(requested: tuple[str | None, str], topic: NamedTopic | None, answer: Answer | None) -> Values:
    name, topic_id = requested
    if answer is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if name is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return {"Name": name, "TopicId": topic_id, "ErrorCode": error}
    response: Values = {"Name": name, "TopicId": topic_id} if topic is None else _named(topic)
    return response | {"ErrorCode": code_of(answer.error), "ErrorMessage": text(answer)}


def _named(topic: NamedTopic) -> Values:
    return {"Name": topic.name, "TopicId": topic.topic_id}


async def create_partitions(context: Asking, request: Request, peer: Peer) -> Values:
    """Add partitions to topics."""
    body = request.values
    events = [
        CreatePartitions(
            time_ms=now_ms(),
            topic=topic["Name"],
            total=topic["Count"],
            assignment=None
            if topic["Assignments"] is None
            else tuple(tuple(one["BrokerIds"]) for one in topic["Assignments"]),
            validate_only=body["ValidateOnly"],
        )
        for topic in body["Topics"]
    ]
    answers = await context.ask_as_admin(request, events)
    results = [
        {"Name": topic["Name"], "ErrorCode": code_of(answer.error), "ErrorMessage": text(answer)}
        for topic, answer in zip(body["Topics"], answers, strict=True)
    ]
    return {"Results": results}
