"""How many records of the metadata log a request leads to. A request for more than ``RECORDS_MAX`` is refused."""

from collections.abc import Callable

from brokers.gateways.kraft.context import Context, config_of
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.image import ALL_BROKERS, BROKER_RESOURCE
from brokers.wire.schema import Values


def records_of(context: Context, request: Request) -> int:
    """Return how many records a request can lead to at most; 0 for requests without a bound."""
    count = _COUNTS.get(request.name)
    return 0 if count is None else count(context, request.values)


def _created_topics(context: Context, body: Values) -> int:
    default = _default_partitions(context)
    return sum(1 + len(topic["Configs"]) + _partitions(topic, default) for topic in body["Topics"])


def created_partitions(context: Context, topic: Values) -> int:
    """Return how many partitions a topic in a CreateTopics request would have."""
    return _partitions(topic, _default_partitions(context))


def _partitions(topic: Values, default: int) -> int:
    if topic["Assignments"]:
        return len(topic["Assignments"])
    return default if topic["NumPartitions"] == -1 else max(topic["NumPartitions"], 1)


def _default_partitions(context: Context) -> int:
    # A gateway knows only the value that an admin has set, not the engine's own.
    value = config_of(context.image, BROKER_RESOURCE, ALL_BROKERS).get("num.partitions", "")
    return int(value) if value.isdecimal() else 1


def _added_partitions(context: Context, body: Values) -> int:
    return sum(max(added_partitions(context, topic), len(topic["Assignments"] or ()), 1) for topic in body["Topics"])


def added_partitions(context: Context, topic: Values) -> int:
    """Return how many partitions a topic in a CreatePartitions request would gain; 0 or less if it will be refused."""
    held = context.topic_named(topic["Name"])
    return 0 if held is None else int(topic["Count"]) - len(held.partitions)


def _settings(context: Context, body: Values) -> int:
    return sum(max(len(resource["Configs"]), 1) for resource in body["Resources"])


_COUNTS: dict[str, Callable[[Context, Values], int]] = {
    "CreateTopics": _created_topics,
    "DeleteTopics": lambda _, body: len(body["TopicNames"]) + len(body["Topics"]),
    "CreatePartitions": _added_partitions,
    "AlterConfigs": _settings,
    "IncrementalAlterConfigs": _settings,
    "AlterClientQuotas": lambda _, body: sum(max(len(entry["Ops"]), 1) for entry in body["Entries"]),
    "AlterUserScramCredentials": lambda _, body: len(body["Deletions"]) + len(body["Upsertions"]),
    "CreateAcls": lambda _, body: len(body["Creations"]),
    "AlterPartitionReassignments": lambda _, body: sum(len(topic["Partitions"]) for topic in body["Topics"]),
    "ElectLeaders": lambda _, body: sum(len(topic["Partitions"]) for topic in body["TopicPartitions"] or ()),
}
