"""A bus of each kind, opened once or twice."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.interface import Bus
from bus.open_bus import open_bus


@pytest.fixture(params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka_bus)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'bus.db'}"
    return str(request.getfixturevalue("kafka_url"))


@pytest.fixture
def bus(url: str) -> Iterator[Bus]:
    bus = open_bus(url)
    yield bus
    bus.close()


@pytest.fixture
def other(url: str, bus: Bus) -> Iterator[Bus]:
    """The same bus, opened a second time as another process would."""
    other = open_bus(url)
    yield other
    other.close()
