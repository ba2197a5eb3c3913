"""A disk that is full or read-only ends the engine with a clear message, and costs nothing once there is room again."""

from pathlib import Path

import pytest

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import BusError
from tests.faults.disks import Disk, small_disk
from tests.support.engine import Engine, by_rules, decided, decisions_of
from tests.support.random_logs import seeded

pytestmark = pytest.mark.spark
CANNOT_REACH = 3


def assert_ended_with_a_message(engine: Engine, said: str) -> None:
    assert engine.wait() == CANNOT_REACH, engine.log.read_text()[-3_000:]
    last = engine.log.read_text().strip().splitlines()[-1]
    assert said in last and "Traceback" not in last, engine.log.read_text()[-3_000:]


def decides(bus: EmbeddedBus, disk: Disk, log: list[bytes]) -> Engine:
    """Start an engine, and check that it decides some events."""
    engine = Engine(disk.folder)
    decided(bus, bus.publish_own(log), engine=engine)
    return engine


def test_a_full_disk_and_a_read_only_one_lose_nothing(tmp_path: Path) -> None:
    log = [raw for _, raw in seeded(seed=21, count=600)]
    with small_disk(tmp_path / "disk", mib=96) as disk:
        bus = EmbeddedBus(disk.folder / "bus.db")
        engine = decides(bus, disk, log[:300])
        try:
            disk.fill()
            assert_ended_with_a_message(engine, "full")
            with pytest.raises(BusError, match="full"):
                bus.publish_own([log[300] + b" " * 100_000])
            disk.free()
            bus.close()
            disk.read_only(True)
            engine = Engine(disk.folder, log=tmp_path / "read-only.log")
            assert_ended_with_a_message(engine, "read")
            disk.read_only(False)
            # It goes on from what the first one left, and costs nothing of that.
            bus = EmbeddedBus(disk.folder / "bus.db")
            engine = decides(bus, disk, log[300:])
            assert engine.stop() == 0
        finally:
            engine.kill()
        expected = by_rules(bus)
        assert decisions_of(bus) == expected.decisions
        assert view_of_image(bus.image()) == expected.view()
        bus.close()
