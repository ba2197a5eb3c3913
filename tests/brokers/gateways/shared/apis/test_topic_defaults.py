"""The settings of a topic that it does not have itself; ``tests/real_kafka`` compares the defaults with Kafka's own."""

from brokers.gateways.shared.apis.topic_defaults import (
    DEFAULT,
    DEFAULTS,
    OF_ALL_BROKERS,
    OF_TOPIC,
    Effective,
    Origin,
    effective,
)
from state.features import USUAL_METADATA_VERSION
from state.topic_settings import known_in

NAMES = known_in(USUAL_METADATA_VERSION)


def settings(topic: dict[str, str], all_brokers: dict[str, str]) -> dict[str, Effective]:
    return {one.name: one for one in effective(topic, all_brokers)}


def test_every_setting_of_a_topic_has_a_default_but_the_internal_one() -> None:
    assert set(NAMES) - set(DEFAULTS) == {"internal.segment.bytes"}
    assert set(DEFAULTS) <= set(NAMES)


def test_a_topics_own_setting_stands_before_that_of_all_brokers() -> None:
    found = settings({"retention.ms": "1"}, {"log.retention.ms": "2", "log.cleanup.policy": "compact"})
    own, of_brokers = Origin("retention.ms", "1", OF_TOPIC), Origin("log.retention.ms", "2", OF_ALL_BROKERS)
    assert found["retention.ms"] == Effective("retention.ms", "1", OF_TOPIC, (own, of_brokers))
    compacted = Origin("log.cleanup.policy", "compact", OF_ALL_BROKERS)
    deleted = Origin("log.cleanup.policy", "delete", DEFAULT)
    assert found["cleanup.policy"] == Effective("cleanup.policy", "compact", OF_ALL_BROKERS, (compacted, deleted))
    assert found["segment.ms"] == Effective("segment.ms", "604800000", DEFAULT, ())
    assert found["remote.storage.enable"] == Effective("remote.storage.enable", "false", DEFAULT, ())


def test_hours_and_minutes_are_converted_and_the_finer_unit_counts() -> None:
    assert settings({}, {"log.retention.hours": "2"})["retention.ms"].value == "7200000"
    assert settings({}, {"log.retention.hours": "2", "log.retention.minutes": "1"})["retention.ms"].value == "60000"
    assert settings({}, {"log.roll.hours": "many"})["segment.ms"].value == "many"
