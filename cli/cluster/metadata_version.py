"""The metadata version with which a new cluster's metadata log begins."""

from brokers.launch.kafka.node import KafkaError
from cli.admin_requests import Ask, answers_to
from cli.cluster.bus_place import BusPlace
from cli.errors import WrongUse
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS
from conf.settings import Settings
from state.decisions import Rejected
from state.entity import FEATURES
from state.features import (
    ELIGIBLE_LEVEL,
    ELIGIBLE_ON_SINCE,
    LEVEL_OF_KAFKA_4_3,
    METADATA_VERSION,
    METADATA_VERSIONS,
    USUAL_METADATA_VERSION,
)

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


def first_requests(level: int | None, *, is_new_bus: bool) -> list[dict[str, object]]:
    """Return what is asked of the engine before the metadata log begins at a level; None is the usual one.

    A level that needs level 2 of the bus (``state.level``) raises that first. So does one that begins with eligible
    leader replicas, if the bus is new: no process of a former release has used it.
    """
    begins_at = level or USUAL_METADATA_VERSION
    requests: list[dict[str, object]] = []
    if begins_at >= METADATA_VERSIONS["4.3"]:
        requests.append({"kind": "raise_level", "level": LEVEL_OF_KAFKA_4_3})
    elif is_new_bus and begins_at >= ELIGIBLE_ON_SINCE:
        requests.append({"kind": "raise_level", "level": ELIGIBLE_LEVEL})
    if level is not None:
        values = {METADATA_VERSION: level}
        requests.append({"kind": "alter_entity", "entity_type": FEATURES, "names": {}, "values": values})
    return requests


def choose_metadata_version(place: BusPlace, requests: list[dict[str, object]]) -> None:
    """Let the engine decide the requests before any gateway starts: the first gateway that leads begins the log.

    Raises ``KafkaError`` if one is refused, and ``Unreachable`` if it is not decided in time.
    """
    ask = Ask(Settings(bus=place.url), "table", dry_run=False, timeout_ms=TIMEOUT_MS)
    for answer in answers_to(ask, requests):
        if isinstance(answer, Rejected) or answer.error != "NONE":
            raise KafkaError(f"the engine on {place} did not let the metadata log begin: {answer.message}")
