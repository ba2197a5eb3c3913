"""Real brokers as ``isrflow cluster up`` made them."""

from pathlib import Path

from brokers.launch.kafka.cluster import KafkaCluster
from bus.embedded import EmbeddedBus
from cli.cluster.led_cluster import LedCluster
from conf.jars import fetch
from tests.support.real_cluster import RealCluster


class UpCluster(RealCluster):
    """The running cluster in a folder, on the embedded bus at ``bus_path``. ``tools`` names the jars of its tools."""

    def __init__(self, folder: Path, bus_path: Path, tools: str = "kafka-tools") -> None:
        fetch(tools)
        self.bus_path = bus_path
        self.bus = EmbeddedBus(bus_path)
        self.kafka = KafkaCluster.open(folder)
        led = LedCluster.open(self.kafka)
        assert led is not None
        self.led = led
        self.gateways = led.gateways
