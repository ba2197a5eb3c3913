"""A bus on real Kafka."""

from collections.abc import Iterator

import pytest

from bus.kafka.bus import KafkaBus


@pytest.fixture
def bus(kafka_url: str) -> Iterator[KafkaBus]:
    bus = KafkaBus(kafka_url)
    yield bus
    bus.close()
