"""The topics of a bus on Kafka: made once, with what each needs."""

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from bus.interface import BusError, NoBusError
from bus.kafka.connection import MESSAGE_BYTES_MAX, REQUEST_TIMEOUT_S, Connection

OFFSETS_PARTITIONS = 4
# Whoever reads the whole state must find each page as it was when the reading began, or newer.
READ_WHOLE_TIMEOUT_MS = 60_000
# Only segments that have ended are compacted, and whoever reads the state reads all that is not: so they end soon.
_SMALL_SEGMENTS = {
    "segment.bytes": str(64 * 1024 * 1024),
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}
_RETAINED = {"cleanup.policy": "delete"}
_LATEST = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(READ_WHOLE_TIMEOUT_MS)} | _SMALL_SEGMENTS
# Of each replica the newest offset is enough. Deleted besides: a replica that is gone says no more.
_OFFSETS = {"cleanup.policy": "compact,delete"} | _SMALL_SEGMENTS
REPLICATION_FACTOR_MAX = 3


def open_topics(connection: Connection, *, create: bool, replication_factor: int = 0) -> int:
    """Return how many partitions the offsets topic has; raises ``BusError`` when topics are missing or of no use.

    With ``create``, topics that are missing are made, with the cluster's own retention, and the settings of those that
    are there are looked at. With a ``replication_factor`` of 0 they get three replicas, or as many as there are
    brokers; all but one must have what is acknowledged.
    """
    with connection.errors():
        listed = connection.admin.list_topics(timeout=REQUEST_TIMEOUT_S)
    factor = replication_factor or min(REPLICATION_FACTOR_MAX, len(listed.brokers))
    wanted = _wanted(connection, factor)
    found = {name: len(topic.partitions) for name, topic in listed.topics.items()}
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


def _wanted(connection: Connection, factor: int) -> dict[str, NewTopic]:
    address = connection.address
    size = {"max.message.bytes": str(MESSAGE_BYTES_MAX)}
    in_sync = {"min.insync.replicas": str(max(1, factor - 1))}
    settings = {
        address.events: _RETAINED | size,
        address.offsets: _OFFSETS | size,
        address.decisions: _RETAINED | size,
        address.state: _LATEST | size,
        address.controller: _LATEST,
    }
    return {
        name: NewTopic(name, OFFSETS_PARTITIONS if name == address.offsets else 1, factor, config=config | in_sync)
        for name, config in settings.items()
    }


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
