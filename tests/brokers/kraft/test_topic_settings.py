"""Which numbers and lists a topic's settings may have; ``tests/real_kafka`` compares the table with Kafka's own."""

import pytest

from brokers.gateways.kraft.topic_settings import complaint_about


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
    assert (complaint_about(name, value) is None) == is_right
