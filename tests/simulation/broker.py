"""A simulated broker: all parts of the real one, behind the simulated network and bus.

Only the parts that touch the machine are replaced: the listening socket, the fetchers' connections (``network``),
the bus, the clock (``wall_clocks``), and what a disk loses if the machine crashes (``disk``).
"""

from pathlib import Path
from typing import Any

from brokers.mock.apis.context import Context
from brokers.mock.apis.serving import answering
from brokers.mock.broker import Broker, DirectoryLostError
from brokers.mock.control.lifecycle import ReplacedError
from brokers.mock.replicas.partition import Partition
from brokers.mock.settings import Identity, Settings
from bus.interface import Bus
from state.events import TopicPartition
from tests.simulation.network import PORTS_FROM, Network


class _Server:
    """A server that listens on the simulated network."""

    def __init__(self, network: Network, context: Context) -> None:
        self._network = network
        self._context = context

    async def start(self, host: str, port: int) -> int:
        port = PORTS_FROM + self._context.broker
        self._network.serve(port, answering(self._context))
        return port

    async def stop(self) -> None:
        self._network.serve(PORTS_FROM + self._context.broker, _gone)


def gives_up(error: Exception) -> bool:
    """Return whether a broker is right to end: its disk is lost, or another process has its id."""
    held = error.exceptions[0] if isinstance(error, ExceptionGroup) else error
    return isinstance(held, DirectoryLostError | ReplacedError)


async def _gone(frame: bytes, peer: Any) -> bytes | None:
    raise ConnectionResetError("the broker is stopping")


class SimulatedBroker(Broker):
    """The real broker, except for its server."""

    def __init__(self, broker: int, directory: Path, settings: Settings, bus: Bus, network: Network) -> None:
        self._network = network
        super().__init__(Identity(broker=broker, bus=directory, directory=directory), settings, bus)

    def server_of(self, context: Context) -> Any:
        return _Server(self._network, context)

    @property
    def id(self) -> int:
        return self.identity.broker

    @property
    def partitions(self) -> dict[TopicPartition, Partition]:
        return self.replicas.partitions

    @property
    def lifecycle_state(self) -> str:
        return self.lifecycle.state.value

    @property
    def broker_epoch(self) -> int:
        return self.lifecycle.broker_epoch

    def fetched_from(self, place: TopicPartition) -> list[int]:
        """List the leaders that a partition is fetched from."""
        return list(self.replicas.fetchers.leader_epochs(place))
