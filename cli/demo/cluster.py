"""A demo's cluster: one engine and three brokers over one bus, all below one directory."""

from collections.abc import Sequence
from pathlib import Path

from brokers.launch.kafka.cluster import free_ports
from brokers.launch.service import Service, kill_all
from bus.embedded import EmbeddedBus

BROKERS = (1, 2, 3)
HOST = "127.0.0.1"
# Few partitions need few shards, and few shards make short micro-batches.
SIZES = ("shards=2", "pages=4", "driver.memory=512m", "log.format=console")


class DemoCluster:
    """Start and end the processes of a demo; which ones is said by the kind of cluster."""

    def __init__(self, directory: Path, bus: Path) -> None:
        self.directory = directory
        self.bus = EmbeddedBus(bus)
        (self.metrics_port,) = free_ports(1)
        self.services: list[Service] = []

    def start(self) -> None:
        """Start the engine and all brokers; they need not be ready yet."""
        raise NotImplementedError

    def wait_until_started(self) -> None:
        """Wait until every broker serves clients."""
        raise NotImplementedError

    def broker(self, broker: int) -> Service:
        """Give a broker's process."""
        raise NotImplementedError

    def bootstrap_servers(self) -> list[str]:
        """List where the brokers listen, of those that do."""
        raise NotImplementedError

    def create_topic(self, topic: str, partitions: int, min_isr: int) -> None:
        """Ask for a topic with a replica on each broker; it need not be there yet."""
        raise NotImplementedError

    def engine_settings(self, times: Sequence[str]) -> tuple[str, ...]:
        return (*times, *SIZES, f"metrics.port={self.metrics_port}", f"metrics.host={HOST}")

    def start_service(self, service: Service) -> None:
        """Start a process, again if need be, and watch over it from then on."""
        service.start()
        if service not in self.services:
            self.services.append(service)

    def check(self) -> None:
        """Raise ``ServiceError`` when any process has ended by itself."""
        for service in self.services:
            service.check()

    def stop(self) -> None:
        """End all processes at once: what they would still put in order is thrown away with the directory."""
        kill_all(self.services)
