"""Admins' requests about topics (CreateTopics, CreatePartitions)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, partial

from brokers.gateways.shared.apis.asking import RECORDS_MAX, Asking, error_of
from brokers.gateways.shared.apis.topic_defaults import effective
from brokers.gateways.shared.slices import in_slices
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode
from brokers.wire.metadata.topic import METADATA_TOPIC
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import Answer
from state.events import CreatePartitions, CreateTopic
from state.topic_name import has_length_of_a_topic
from state.topic_settings import complaint_about

# From this version on, a response has the topic's settings.
_SETTINGS_VERSION = 5


async def create_topics(context: Asking, request: Request, peer: Peer) -> Values:
    """Create topics independently: one that is refused does not affect the others."""
    body = request.values
    times = Counter(topic["Name"] for topic in body["Topics"])
    # A topic that is named twice is answered once.
    outcomes: dict[str, Values] = {}
    requested: list[CreateTopic] = []
    metadata_version = context.brokers_metadata_version
    async for topic in in_slices(body["Topics"]):
        refusal = _refusal(topic, times[topic["Name"]], metadata_version)
        outcomes[topic["Name"]] = refusal or {}
        if refusal is None:
            requested.append(_creation(topic, body["validateOnly"]))
    answers = await context.ask_as_admin(request, requested)
    # Most topics of a large request have the same settings.
    settings_of = cache(partial(_settings, context.settings_of_all_brokers()))
    async for event, answer in in_slices(zip(requested, answers, strict=True)):
        outcomes[event.topic] = response = _creation_response(event.topic, answer)
        if request.version >= _SETTINGS_VERSION and "NumPartitions" in response:
            response["Configs"] = settings_of(tuple(event.config.items()))
    return {"Topics": list(outcomes.values())}


def _refusal(topic: Values, times: int, metadata_version: int) -> Values | None:
    """Refuse a topic without asking the engine, as Kafka's controller does; None if the engine must decide."""
    name = topic["Name"]
    error = ErrorCode.INVALID_REQUEST
    settings = ((one["Name"], one["Value"]) for one in topic["Configs"])
    if times > 1:
        message = f"{name} is named {times} times"
    elif name == METADATA_TOPIC:
        # Brokers keep the metadata log under this name.
        message = f"{name} is reserved for the metadata log"
    elif complaints := [wrong for one in settings if (wrong := complaint_about(*one, metadata_version))]:
        error, message = ErrorCode.INVALID_CONFIG, complaints[0]
    elif len({one["PartitionIndex"] for one in topic["Assignments"]}) < len(topic["Assignments"]):
        error, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{name}: a partition is assigned twice"
    elif impossible := _impossible_partitions(topic["Assignments"]):
        error, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{name} cannot have partitions {impossible}"
    elif unknown := _impossible_brokers(topic["Assignments"]):
        error, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{name}: there are no brokers {unknown}"
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
    response: Values = {"Name": name} | error_of(answer)
    if answer.error == "NONE" and isinstance(answer.assignment, dict):
        replicas = list(answer.assignment.values())
        response |= {"NumPartitions": len(replicas), "ReplicationFactor": len(replicas[0])}
        if isinstance(answer.topic_id, str):
            response["TopicId"] = answer.topic_id
    return response


def _settings(all_brokers: Mapping[str, str], config: tuple[tuple[str, object], ...]) -> list[Values]:
    return [
        {"Name": one.name, "Value": one.value, "ReadOnly": False, "ConfigSource": one.source, "IsSensitive": False}
        for one in effective({name: str(value) for name, value in config}, all_brokers)
    ]


async def create_partitions(context: Asking, request: Request, peer: Peer) -> Values:
    """Add partitions to topics independently."""
    body = request.values
    times = Counter(topic["Name"] for topic in body["Topics"])
    # A topic that is named twice is answered once.
    requested = {topic["Name"]: topic for topic in body["Topics"]}
    refusals = {name: _refused_growth(topic, times[name]) for name, topic in requested.items()}
    events = [_growth(topic, body["ValidateOnly"]) for name, topic in requested.items() if refusals[name] is None]
    answers = iter(await context.ask_as_admin(request, events))
    return {"Results": [refusals[name] or {"Name": name} | error_of(next(answers)) for name in requested]}


def _refused_growth(topic: Values, times: int) -> Values | None:
    """Refuse partitions without asking the engine, as Kafka's controller does; None if the engine must decide."""
    name = topic["Name"]
    if times > 1:
        error, message = ErrorCode.INVALID_REQUEST, f"{name} is named {times} times"
    elif not has_length_of_a_topic(name):
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has such a name"
    elif unknown := _impossible_brokers(topic["Assignments"] or ()):
        error, message = ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{name}: there are no brokers {unknown}"
    else:
        return None
    return {"Name": name, "ErrorCode": error, "ErrorMessage": message}


def _growth(topic: Values, validate_only: bool) -> CreatePartitions:
    assigned = topic["Assignments"]
    return CreatePartitions(
        time_ms=now_ms(),
        topic=topic["Name"],
        total=topic["Count"],
        assignment=None if assigned is None else tuple(tuple(one["BrokerIds"]) for one in assigned),
        validate_only=validate_only,
    )


def _impossible_partitions(assignments: Sequence[Values]) -> list[int]:
    """Return the partition numbers in assignments that are negative, or too high for any one request.

    Some of them would not fit into an event, so the gateway refuses them itself.
    """
    numbers = (one["PartitionIndex"] for one in assignments)
    return [number for number in numbers if not 0 <= number < RECORDS_MAX]


def _impossible_brokers(assignments: Sequence[Values]) -> list[int]:
    """Return the negative broker ids in assignments, which no event may have."""
    return [broker for one in assignments for broker in one["BrokerIds"] if broker < 0]
