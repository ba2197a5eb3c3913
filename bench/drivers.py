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
    """Make the engine as it is configured by default, except for ``settings``."""
    return BusDriver(folder, load, [*_settings(load), *settings])


def one_task(folder: Path, load: Load) -> Driver:
    """Make the engine with one Spark task for all shards."""
    return engine(folder, load, "shuffle.partitions=1")


def on_kafka(folder: Path, load: Load) -> Driver:
    """Make the engine on a bus on Kafka."""
    return BusDriver(folder, load, _settings(load), buses.on_kafka)


def peer(folder: Path, load: Load) -> Driver:
    """Make a controller of stock Kafka."""
    heap = "3g" if load.partitions >= _VERY_LARGE else "1g"
    return ProtocolDriver(StockController(folder, load.session_ms, heap), load)


def gateway(folder: Path, load: Load) -> Driver:
    """Make the engine behind a gateway."""
    return ProtocolDriver(EngineBehindGateway(folder, _settings(load)), load)


def zookeeper_peer(folder: Path, load: Load) -> Driver:
    """Make a controller of Kafka 3.9 in ZooKeeper mode."""
    return ZookeeperDriver(StockInZookeeper(folder), load)


def zookeeper_gateway(folder: Path, load: Load) -> Driver:
    """Make the engine behind a gateway to brokers in ZooKeeper mode."""
    # ZooKeeper says which brokers are alive.
    return ZookeeperDriver(EngineInZookeeper(folder, _settings(load, session_ms=60_000)), load)


def _settings(load: Load, session_ms: int | None = None) -> list[str]:
    memory = "4g" if load.partitions >= _VERY_LARGE else "2g" if load.partitions >= _LARGE else "1g"
    return [
        "auto.leader.rebalance.enable=false",
        f"broker.session.timeout.ms={session_ms or load.session_ms}",
        f"driver.memory={memory}",
    ]


DRIVERS: dict[str, Callable[[Path, Load], Driver]] = {
    "engine": engine,
    "engine-1-task": one_task,
    "engine-on-kafka": on_kafka,
    "peer": peer,
    "gateway": gateway,
    "zookeeper-peer": zookeeper_peer,
    "zookeeper-gateway": zookeeper_gateway,
}
