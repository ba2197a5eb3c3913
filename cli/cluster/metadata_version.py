"""The metadata version with which a new cluster's metadata log begins."""

from brokers.launch.kafka.node import KafkaError
from cli.admin_requests import Ask, answers_to
from cli.cluster.bus_place import BusPlace
from cli.errors import WrongUse
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS
from conf.settings import Settings
from state.decisions import Rejected
from state.entity import FEATURES
from state.features import LEVEL_OF_KAFKA_4_3, METADATA_VERSION, METADATA_VERSIONS

# A cold engine on a busy machine decides late.
TIMEOUT_MS = 120_000


def level_of(kafka: str | None, release: str | None) -> int | None:
    """Return the level of the chosen release, or else of the version of Kafka. None means the usual one."""
    if release is None and kafka is not None and kafka != KAFKA_VERSION:
        release = KAFKA_VERSIONS[kafka].release
    return METADATA_VERSIONS[release] if release else None


def check_metadata_version(kafka: str, release: str) -> None:
    """Refuse a level that brokers of a version of Kafka do not support. Raises ``WrongUse``."""
    newest = KAFKA_VERSIONS[kafka].release
    if METADATA_VERSIONS[release] > METADATA_VERSIONS[newest]:
        raise WrongUse(f"--metadata-version {release}: brokers of Kafka {kafka} support {newest} at most")


def choose_metadata_version(place: BusPlace, level: int) -> None:
    """Let the engine decide the choice before any gateway starts: the first gateway that leads begins the log.

    A choice that needs level 2 of the bus (``state.level``) raises the level first. Raises ``KafkaError`` if any is
    refused, and ``Unreachable`` if it is not decided in time.
    """
    ask = Ask(Settings(bus=place.url), "table", dry_run=False, timeout_ms=TIMEOUT_MS)
    chosen = {"kind": "alter_entity", "entity_type": FEATURES, "names": {}, "values": {METADATA_VERSION: level}}
    needed = {"kind": "raise_level", "level": LEVEL_OF_KAFKA_4_3}
    for answer in answers_to(ask, [needed, chosen] if level >= METADATA_VERSIONS["4.3"] else [chosen]):
        if isinstance(answer, Rejected) or answer.error != "NONE":
            raise KafkaError(f"the engine on {place} did not take {METADATA_VERSION} {level}: {answer.message}")
