"""The topics of a bus on Kafka: made once, each with the settings that it needs."""

import structlog
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType  # type: ignore[attr-defined]

from bus.interface import BusError, NoBusError
from bus.kafka import snapshots
from bus.kafka.connection import Connection
from isrflow.kafka.address import Address
from isrflow.kafka.limits import MESSAGE_BYTES_MAX, REQUEST_TIMEOUT_S

logger = structlog.get_logger()

# Compaction keeps every record for this long, so that a reader of the whole state misses no page.
READ_WHOLE_TIMEOUT_MS = 60_000
# Kafka compacts only closed segments, and a reader of the state must read all versions in the others. So segments close
# soon.
_SMALL_SEGMENTS = {
    "segment.bytes": str(64 * 1024 * 1024),
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}
_RETAINED = {"cleanup.policy": "delete"}
# The rules judge by when an event entered the bus, so Kafka notes that time, and not the author of the event.
_ENTERED = {"message.timestamp.type": "LogAppendTime"}
# The engine removes these together with the history that needs them. Kafka alone would also remove events that are not
# decided yet, because the engine was away.
_NEVER = {"retention.ms": "-1", "retention.bytes": "-1"}
_KEPT = {"cleanup.policy": "delete"} | _NEVER
# Otherwise a setting of the brokers would compress these topics again, and a plain client may lack the codec.
_AS_SENT = {"compression.type": "producer"}
# Topics that an operator has made may lack these. The engine works with them, but cannot notice an author's wrong
# clock, loses events while it is away, or has readers that lack the codec.
_TOLD = _ENTERED | _NEVER | _AS_SENT
_LATEST = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(READ_WHOLE_TIMEOUT_MS)} | _SMALL_SEGMENTS
REPLICATION_FACTOR_MAX = 3


def open_topics(connection: Connection, *, create: bool, replication_factor: int = 0) -> None:
    """Find the topics of a bus. Raises ``BusError`` if one is missing or unusable.

    With ``create``, make missing topics, and check the settings of existing ones. If ``replication_factor`` is 0, new
    topics get three replicas, or one per broker if there are fewer. All replicas but one must have a record before it
    is acknowledged.
    """
    listed = connection.list_topics()
    factor = replication_factor or min(REPLICATION_FACTOR_MAX, len(listed.brokers))
    wanted = wanted_topics(connection.address, factor)
    found = {name: len(topic.partitions) for name, topic in listed.topics.items()}
    missing = [name for name in wanted if name not in found]
    if missing and not create:
        raise NoBusError(
            f"bus {connection.address}: there is no topic {missing[0]}: start the engine with 'isrflow run'."
        )
    for name, topic in wanted.items():
        if topic.num_partitions == 1 and found.get(name, 1) != 1:
            raise BusError(f"bus {connection.address}: topic {name} must have one partition, but has {found[name]}")
    if create:
        _check_settings(connection, [wanted[name] for name in wanted if name not in missing])
    if missing and create:
        _create(connection, [wanted[name] for name in missing])


def wanted_topics(address: Address, replication_factor: int) -> dict[str, NewTopic]:
    """Describe the topics of a bus by name, as they are made."""
    size = {"max.message.bytes": str(MESSAGE_BYTES_MAX)}
    in_sync = {"min.insync.replicas": str(max(1, replication_factor - 1))}
    settings = {
        address.events: _KEPT | _ENTERED | size,
        address.decisions: _RETAINED | size,
        address.state: _LATEST | size,
        address.controller: _LATEST,
        address.snapshots: _RETAINED | size,
    }
    partitions = {address.snapshots: snapshots.PARTITIONS}
    return {
        name: NewTopic(name, partitions.get(name, 1), replication_factor, config=config | in_sync | _AS_SENT)
        for name, config in settings.items()
    }


def _check_settings(connection: Connection, topics: list[NewTopic]) -> None:
    """Refuse topics that lose what they must keep, or that do not accept what is sent to them."""
    resources = {topic.topic: ConfigResource(ResourceType.TOPIC, topic.topic) for topic in topics}
    if not resources:
        return
    with connection.errors():
        descriptions = connection.admin.describe_configs(list(resources.values()), request_timeout=REQUEST_TIMEOUT_S)
        found = {name: descriptions[resource].result(REQUEST_TIMEOUT_S + 1) for name, resource in resources.items()}
    for topic in topics:
        for setting, needed in (topic.config or {}).items():
            value = str(found[topic.topic][setting].value)
            if setting in _TOLD and value != needed:
                at = f"--bootstrap-server {connection.address.servers} --alter --entity-type topics"
                mend = f"kafka-configs.sh {at} --entity-name {topic.topic} --add-config {setting}={needed}"
                lacks = {"topic": topic.topic, "setting": setting, "is_now": value, "wanted": needed}
                logger.warning("topic lacks a setting", **lacks, mend=mend)
            expected = _unlike(setting, value, needed)
            if expected:
                raise BusError(
                    f"bus {connection.address}: topic {topic.topic} has {setting} = {value}, but needs {expected}"
                )


def _unlike(setting: str, found: str, needed: str) -> str | None:
    """Return what the value of a topic's setting must be; None if ``found`` will do."""
    if setting == "max.message.bytes":
        return None if int(found) >= int(needed) else f"at least {needed}"
    if setting == "cleanup.policy":
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
                # Another process may open the new bus at the same time.
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
