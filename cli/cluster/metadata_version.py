"""The metadata version with which a new cluster's metadata log begins."""

import msgspec

from brokers.launch.kafka.node import KafkaError
from bus.clock import now_ms
from bus.image import read_image
from cli.cluster.bus_place import BusPlace
from cli.publish import wait_for_decisions
from conf.jars import ZOOKEEPER_KAFKA_VERSION
from state.entity import entity_id_of
from state.entity_events import AlterEntity
from state.features import METADATA_VERSION, METADATA_VERSIONS

# A cold engine on a busy machine decides late.
TIMEOUT_MS = 120_000


def level_of(kafka: str | None, release: str | None) -> int | None:
    """Return the level of the chosen release, or else of the version of Kafka. None means the usual one."""
    if release is None and kafka == ZOOKEEPER_KAFKA_VERSION:
        release = ".".join(kafka.split(".")[:2])
    return METADATA_VERSIONS[release] if release else None


def choose_metadata_version(place: BusPlace, level: int) -> None:
    """Have the engine decide on the choice, before any gateway starts: the first one to lead begins the log.

    Raises ``KafkaError`` if it is not taken, and ``Unreachable`` if it is not decided in time.
    """
    chosen = AlterEntity(time_ms=now_ms(), entity_type="features", names={}, values={METADATA_VERSION: level})
    bus = place.open()
    try:
        wait_for_decisions(bus, bus.publish([msgspec.json.encode(chosen)]), TIMEOUT_MS)
        features = read_image(bus.image()).cluster.entities.get(entity_id_of("features", {}))
    finally:
        bus.close()
    if features is None or features.values.get(METADATA_VERSION) != str(level):
        raise KafkaError(
            f"the engine on {place} did not take {METADATA_VERSION} {level}: expected an engine of this isrflow"
        )
