"""Which numbers and lists a topic's settings may have; ``tests/real_kafka`` compares the table with Kafka's own."""

import pytest

from state.features import METADATA_VERSIONS
from state.topic_settings import complaint_about, known_in


@pytest.mark.parametrize(
    ("name", "value", "is_right"),
    [
        ("retention.ms", "-1", True),
        ("retention.ms", "-2", False),
        ("retention.ms", f" +{2**63 - 1} ", True),
        ("retention.ms", str(2**63), False),
        ("retention.ms", "-9" + "9" * 30_000, False),
        ("retention.ms", "0" * 30_000, True),
        ("retention.ms", "0" * 30_000 + str(2**63 - 1), True),
        ("retention.ms", "0" * 30_000 + "x", False),
        ("retention.ms", "+", False),
        ("retention.ms", "\u00a07", False),
        ("retention.ms", "\u0667", False),
        ("retention.ms", "1_0", False),
        ("retention.ms", "\x00\t7\n", True),
        ("preallocate", "true\u2003", False),
        ("cleanup.policy", "compact,\u00a0delete", False),
        ("compression.gzip.level", "-1", True),
        ("min.cleanable.dirty.ratio", "0.5", True),
        ("min.cleanable.dirty.ratio", "1.", True),
        ("min.cleanable.dirty.ratio", ".5e0f", True),
        ("min.cleanable.dirty.ratio", ".", False),
        ("min.cleanable.dirty.ratio", "1e999999", False),
        ("min.cleanable.dirty.ratio", "9" * 30_000, False),
        ("min.cleanable.dirty.ratio", "0" * 30_000 + "x", False),
        ("cleanup.policy", " compact , delete ", True),
        ("cleanup.policy", "compact" + " " * 30_000 + "delete", False),
        ("leader.replication.throttled.replicas", "0:1 , 1:2", True),
    ],
)
def test_a_value_is_accepted_as_kafka_does_whatever_its_length(name: str, value: str, is_right: bool) -> None:
    assert (complaint_about(name, value, METADATA_VERSIONS["4.1"]) is None) == is_right


@pytest.mark.parametrize(
    ("name", "value", "releases"),
    [
        ("segment.bytes", "14", ["3.9", "4.0"]),
        ("segment.bytes", "13", []),
        ("segment.bytes", "1048576", [*METADATA_VERSIONS]),
        ("internal.segment.bytes", "100", ["4.1", "4.2", "4.3", "4.4"]),
        ("errors.deadletterqueue.group.enable", "true", ["4.4"]),
        ("remote.copy.lag.ms", "-1", ["4.4"]),
        ("remote.copy.lag.bytes", "-2", []),
        ("max.decompressed.message.bytes", "0", []),
        ("message.downconversion.enable", "false", ["3.9"]),
        ("message.timestamp.difference.max.ms", "5", ["3.9"]),
        ("message.timestamp.difference.max.ms", "-1", []),
        ("message.format.version", "2.8-IV1", ["3.9"]),
        ("message.format.version", "2.8-IV2", []),
        ("message.format.version", "2.8-IV01", []),
        ("message.format.version", "3.9.1", ["3.9"]),
        ("message.format.version", "3.9.", []),
        ("message.format.version", "0.10.0.1", ["3.9"]),
        ("message.format.version", "0.10", []),
        ("message.format.version", "0.9.0-IV0", []),
        ("message.format.version", "4.0", []),
    ],
)
def test_what_a_topic_may_have_depends_on_the_release_of_the_brokers(
    name: str, value: str, releases: list[str]
) -> None:
    taken = [key for key, level in METADATA_VERSIONS.items() if complaint_about(name, value, level) is None]
    assert taken == releases


def test_a_level_between_two_releases_has_the_settings_of_the_later_one() -> None:
    first_of = {"4.0": 22, "4.1": 26, "4.4": 31}
    for release, level in first_of.items():
        assert known_in(level) == known_in(METADATA_VERSIONS[release])
        assert known_in(level) != known_in(level - 1)
