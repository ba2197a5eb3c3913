"""A bus of each kind, on which an engine without Spark decides."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.rules_engine import RulesEngine


@pytest.fixture(params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka_bus)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'bus.db'}"
    return str(request.getfixturevalue("kafka_url"))


@pytest.fixture
def decided_url(url: str) -> Iterator[str]:
    engine = RulesEngine()
    engine.start(url.removeprefix("sqlite:"))
    yield url
    engine.stop()
