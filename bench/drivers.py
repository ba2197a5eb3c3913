"""The drivers by name."""

from collections.abc import Callable
from pathlib import Path

from bench import buses
from bench.bus_driver import BusDriver
from bench.controllers import EngineBehindGateway, StockController
from bench.load import Driver, Load
from bench.protocol_driver import ProtocolDriver
from bench.zookeeper_controllers import EngineInZookeeper, StockInZookeeper
from bench.zookeeper_driver import ZookeeperDriver

# From these numbers of partitions on, Spark's JVM and the peer's need more memory than by default.
_LARGE, _VERY_LARGE = 150_000, 500_000


def engine(folder: Path, load: Load, *settings: str) -> BusDriver:
    """Make the engine with its defaults, except for ``settings``."""
    return BusDriver(folder, load, [*_settings(load), *settings])


def peer(folder: Path, load: Load) -> Driver:
    """Make a controller of stock Kafka."""
    heap = "3g" if load.partitions >= _VERY_LARGE else "1g"
    return ProtocolDriver(StockController(folder, load.session_ms, heap), load)


def _settings(load: Load, session_ms: int | None = None) -> list[str]:
    memory = "4g" if load.partitions >= _VERY_LARGE else "2g" if load.partitions >= _LARGE else "1g"
    return [
        "auto.leader.rebalance.enable=false",
        f"broker.session.timeout.ms={session_ms or load.session_ms}",
        f"driver.memory={memory}",
    ]


DRIVERS: dict[str, Callable[[Path, Load], Driver]] = {
    "engine": engine,
    "engine-1-task": lambda folder, load: engine(folder, load, "shuffle.partitions=1"),
    "engine-on-kafka": lambda folder, load: BusDriver(folder, load, _settings(load), buses.on_kafka),
    "peer": peer,
    "gateway": lambda folder, load: ProtocolDriver(EngineBehindGateway(folder, _settings(load)), load),
    "zookeeper-peer": lambda folder, load: ZookeeperDriver(StockInZookeeper(folder), load),
    # ZooKeeper tells which brokers are alive.
    "zookeeper-gateway": lambda folder, load: ZookeeperDriver(EngineInZookeeper(folder, _settings(load, 60_000)), load),
}
