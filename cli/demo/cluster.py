"""A demo's cluster: one engine and three brokers on one bus, all under one directory."""

from collections.abc import Sequence
from pathlib import Path

from brokers.launch.ports import free_ports
from brokers.launch.service import Service, kill_all
from bus.embedded import EmbeddedBus

BROKERS = (1, 2, 3)
HOST = "127.0.0.1"
# A demo has few partitions, and fewer shards make shorter micro-batches.
SIZES = ("shards=2", "pages=4", "driver.memory=512m", "log.format=console")


class DemoError(Exception):
    """The demo cannot continue. The message says what happened, and where to look."""


class DemoCluster:
    """The processes of a demo. Subclasses choose them."""

    def __init__(self, directory: Path, bus: Path) -> None:
        self.directory = directory
        self.bus = EmbeddedBus(bus)
        (self.metrics_port,) = free_ports(1)
        self.services: list[Service] = []

    def engine_settings(self, times: Sequence[str]) -> tuple[str, ...]:
        return (*times, *SIZES, f"metrics.port={self.metrics_port}", f"metrics.host={HOST}")

    def start_service(self, service: Service) -> None:
        """Start or restart a process, and include it in ``check`` from then on."""
        service.start()
        if service not in self.services:
            self.services.append(service)

    def check(self) -> None:
        """Raise ``ServiceError`` if any process has ended by itself."""
        for service in self.services:
            service.check()

    def moved(self) -> object:
        """Return a value that changes while any process makes progress."""
        return [service.moved() for service in self.services]

    def seen(self) -> str:
        """Describe what each process does."""
        return "\n".join(f"  {service.name}: {service.seen()}; log {service.log_file}" for service in self.services)

    def stop(self) -> None:
        """Kill all processes. An orderly stop would save data that is deleted with the directory."""
        kill_all(self.services)
