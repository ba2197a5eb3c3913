"""The query reads every bus through one contract, and names no bus."""

import ast
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bus.embedded import EmbeddedBus
from bus.kafka.bus import KafkaBus
from conf.settings import Settings
from isrflow.bus_url import KINDS
from streaming.sources.embedded import EmbeddedSource
from streaming.sources.interface import module_of, source_of
from streaming.sources.kafka import KafkaSource

STREAMING = Path(__file__).parents[2] / "streaming"
# A replay creates its own embedded bus, and a replay also produces the archive of classes.
WITH_A_BUS_OF_THEIR_OWN = {"replay.py"}


def kafka_bus() -> KafkaBus:
    """Return a Kafka bus without a connection."""
    return KafkaBus.__new__(KafkaBus)


def test_each_bus_is_read_by_the_source_of_its_kind(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    assert isinstance(source_of(bus), EmbeddedSource)
    assert isinstance(source_of(kafka_bus()), KafkaSource)
    bus.close()


def test_each_kind_of_url_has_a_source_that_spark_processes_are_forked_with() -> None:
    assert [kind.name for kind in KINDS if find_spec(module_of(kind.name)) is None] == []
    assert {KafkaBus.kind, EmbeddedBus.kind} == {kind.name for kind in KINDS}


def test_a_third_bus_needs_a_module_and_no_change_in_the_query(monkeypatch: pytest.MonkeyPatch) -> None:
    third: Any = ModuleType("streaming.sources.third")
    third.source = lambda bus: ("the source of", bus)
    monkeypatch.setitem(sys.modules, "streaming.sources.third", third)
    bus: Any = type("ThirdBus", (), {"kind": "third"})()
    assert source_of(bus) == ("the source of", bus)


def test_no_other_module_of_streaming_knows_a_bus_by_name() -> None:
    found = {}
    for path in STREAMING.glob("*.py"):
        imported = {
            node.module or "" for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
        }
        if known := {
            name
            for name in imported
            if name.startswith(("bus.kafka", "bus.embedded", "isrflow.kafka", "isrflow.sqlite"))
        }:
            found[path.name] = known
    assert set(found) == WITH_A_BUS_OF_THEIR_OWN


def test_only_batches_on_kafka_are_spaced(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    assert source_of(bus).interval_ms(Settings()) is None
    assert source_of(kafka_bus()).interval_ms(Settings(watermark_interval_ms=70)) == 70
    bus.close()
