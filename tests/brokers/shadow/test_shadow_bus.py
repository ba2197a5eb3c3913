"""The bus of a shadow: where a run goes on, and whose bus it is."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from brokers.shadow import shadow_bus
from brokers.shadow.events import encoded
from brokers.shadow.shadow_bus import ForeignBusError, Observation, newest_observation
from bus.embedded import EmbeddedBus
from state.observed_events import Cause, Certainty, Observed, Results


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[EmbeddedBus]:
    bus = EmbeddedBus(tmp_path / "bus.db")
    yield bus
    bus.close()


def observed(offset: int, cluster_id: str = "c", part: int = 0, parts: int = 1) -> Observed:
    return Observed(
        time_ms=1_000,
        cluster_id=cluster_id,
        offset=offset,
        last_offset=offset + 1,
        epoch=3,
        cause=Cause.other,
        certainty=Certainty.open,
        part=part,
        parts=parts,
        results=Results(),
    )


def tick(bus: EmbeddedBus, times: int = 1) -> None:
    bus.publish_own([msgspec.json.encode({"kind": "tick", "time_ms": 1_000, "controller_epoch": 1})] * times)


def test_a_new_bus_has_no_observation(bus: EmbeddedBus) -> None:
    assert newest_observation(bus, "c") is None
    bus.claim("engine", {}, 1_000)
    tick(bus)
    assert newest_observation(bus, "c") is None, "an engine may be there first"


def test_a_run_goes_on_after_the_newest_operation(bus: EmbeddedBus, monkeypatch: pytest.MonkeyPatch) -> None:
    bus.publish([encoded(observed(1)), encoded(observed(5))])
    tick(bus, 5)
    monkeypatch.setattr(shadow_bus, "READ_MAX", 2)
    assert newest_observation(bus, "c") == Observation(6, 3)


def test_an_operation_without_all_its_parts_does_not_count(bus: EmbeddedBus) -> None:
    bus.publish([encoded(observed(1)), encoded(observed(5, parts=2))])
    assert newest_observation(bus, "c") == Observation(2, 3)
    bus.publish([encoded(observed(5, part=1, parts=2))])
    assert newest_observation(bus, "c") == Observation(6, 3)


def test_the_bus_of_another_cluster_is_refused(bus: EmbeddedBus) -> None:
    bus.publish([encoded(observed(1, "another"))])
    with pytest.raises(ForeignBusError, match="the shadow of cluster another, and not of c"):
        newest_observation(bus, "c")


def test_a_bus_on_which_a_cluster_is_led_is_refused(bus: EmbeddedBus) -> None:
    bus.publish([b'{"kind":"broker_register","time_ms":1000,"broker":1,"incarnation":"a"}'])
    with pytest.raises(ForeignBusError, match="the bus of a cluster that is led on it: expected a new bus"):
        newest_observation(bus, "c")
