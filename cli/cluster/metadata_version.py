"""The metadata version with which a new cluster's metadata log begins."""

import msgspec

from bus.clock import now_ms
from cli.cluster.bus_place import BusPlace
from conf.jars import ZOOKEEPER_KAFKA_VERSION
from state.entity_events import AlterEntity
from state.features import METADATA_VERSION, METADATA_VERSIONS


def level_of(kafka: str | None, release: str | None) -> int | None:
    """Return the level of the chosen release, or else of the version of Kafka. None means the usual one."""
    if release is None and kafka == ZOOKEEPER_KAFKA_VERSION:
        release = ".".join(kafka.split(".")[:2])
    return METADATA_VERSIONS[release] if release else None


def choose_metadata_version(place: BusPlace, level: int) -> None:
    """Publish the choice, before any gateway starts: the first one to lead begins the log. Raises ``BusError``."""
    chosen = AlterEntity(time_ms=now_ms(), entity_type="features", names={}, values={METADATA_VERSION: level})
    bus = place.open()
    try:
        bus.publish([msgspec.json.encode(chosen)])
    finally:
        bus.close()
