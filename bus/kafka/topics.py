"""The topics of a bus on Kafka: made once, with what each needs."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from isrflow.bus.interface import BusError, NoBusError
from isrflow.bus.kafka.connection import MESSAGE_BYTES_MAX, REQUEST_TIMEOUT_S, Connection

OFFSETS_PARTITIONS = 4
# Whoever reads the whole state must find each page as it was when the reading began, or newer.
READ_WHOLE_TIMEOUT_MS = 60_000
_RETAINED = {"cleanup.policy": "delete"}
_LATEST = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(READ_WHOLE_TIMEOUT_MS)}


def open_topics(connection: Connection, *, create: bool) -> int:
    """Return how many partitions the offsets topic has; raises ``BusError`` when topics are missing or of no use.

    With ``create``, topics that are missing are made, with the cluster's own replication factor and retention, and the
    settings of those that are there are looked at.
    """
    wanted = _wanted(connection)
    found = _partitions(connection)
    missing = [name for name in wanted if name not in found]
    if missing and not create:
        raise NoBusError(
            f"bus {connection.address}: there is no topic {missing[0]}: start the engine with 'isrflow run' first"
        )
    for name, topic in wanted.items():
        if topic.num_partitions == 1 and found.get(name, 1) != 1:
            raise BusError(f"bus {connection.address}: topic {name} must have one partition, and has {found[name]}")
    if create:
        _check_settings(connection, [wanted[name] for name in wanted if name not in missing])
    if missing:
        _create(connection, [wanted[name] for name in missing])
        found = {name: topic.num_partitions for name, topic in wanted.items()} | found
    return found[connection.address.offsets]


def _wanted(connection: Connection) -> dict[str, NewTopic]:
    address = connection.address
    size = {"max.message.bytes": str(MESSAGE_BYTES_MAX)}
    # An event's entry time is judged by, so brokers stamp it, and not whoever publishes.
    entered = size | {"message.timestamp.type": "LogAppendTime"}
    topics = [
        NewTopic(address.events, 1, config=_RETAINED | entered),
        # Compacted: of each replica the newest is enough. Deleted besides: a replica that is gone says no more.
        NewTopic(address.offsets, OFFSETS_PARTITIONS, config={"cleanup.policy": "compact,delete"} | entered),
        NewTopic(address.decisions, 1, config=_RETAINED | size),
        NewTopic(address.state, 1, config=_LATEST | size),
        NewTopic(address.controller, 1, config=_LATEST),
    ]
    return {topic.topic: topic for topic in topics}


def _partitions(connection: Connection) -> dict[str, int]:
    with connection.errors():
        listed = connection.admin.list_topics(timeout=REQUEST_TIMEOUT_S).topics
    return {name: len(topic.partitions) for name, topic in listed.items()}


def _check_settings(connection: Connection, topics: list[NewTopic]) -> None:
    """Refuse topics that lose what they must keep, or do not take what is sent to them."""
    asked = {topic.topic: ConfigResource(ResourceType.TOPIC, topic.topic) for topic in topics}
    if not asked:
        return
    with connection.errors():
        told = connection.admin.describe_configs(list(asked.values()), request_timeout=REQUEST_TIMEOUT_S)
        found = {name: told[resource].result(REQUEST_TIMEOUT_S + 1) for name, resource in asked.items()}
    for topic in topics:
        for setting, needed in (topic.config or {}).items():
            value = str(found[topic.topic][setting].value)
            expected = _unlike(setting, value, needed)
            if expected:
                raise BusError(
                    f"bus {connection.address}: topic {topic.topic} has {setting} = {value}, and needs {expected}"
                )


def _unlike(setting: str, found: str, needed: str) -> str | None:
    """Say what a topic's setting must be, None where it will do."""
    if setting == "max.message.bytes":
        return None if int(found) >= int(needed) else f"at least {needed}"
    if setting == "cleanup.policy" and "," not in needed:
        return None if found == needed else needed
    return None


def _create(connection: Connection, topics: list[NewTopic]) -> None:
    with connection.errors():
        for made in connection.admin.create_topics(
            topics, operation_timeout=REQUEST_TIMEOUT_S, request_timeout=REQUEST_TIMEOUT_S
        ).values():
            try:
                made.result(REQUEST_TIMEOUT_S + 1)
            except KafkaException as error:
                # Two that open a new bus at once want the same.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
