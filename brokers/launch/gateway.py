"""Gateways as processes, started and found again like the brokers that they lead."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from brokers.launch.service import Service
from brokers.voters import Voter, text_of
from conf.python import PYTHON

_CONNECT_TIMEOUT_S = 0.5


class GatewayService(Service):
    """A gateway of either kind, with its files in ``folder``. ``settings`` are its own, under their names with dots.

    It serves its metrics on any free port.
    """

    # The command of ``isrflow gateway`` that runs it.
    kind: str

    def __init__(
        self,
        voter: Voter,
        voters: Sequence[Voter],
        cluster_id: str,
        bus: str,
        folder: Path,
        settings: Mapping[str, str],
        flags: Sequence[str] = (),
    ) -> None:
        super().__init__(f"gateway {voter.voter}", folder, "gateway.log")
        self.voter = voter
        self.settings = {
            "node.id": str(voter.voter),
            "controller.quorum.voters": text_of(tuple(voters)),
            "cluster.id": cluster_id,
            "metrics.port": "0",
            **settings,
        }
        self._bus = bus
        self._flags = flags

    def command(self) -> list[str]:
        sets = (part for key, value in self.settings.items() for part in ("--set", f"{key}={value}"))
        program = "from cli import main; main()"
        return [*PYTHON, "-c", program, "gateway", self.kind, *self._flags, "--bus", self._bus, *sets]

    def is_ready(self) -> bool:
        """Return whether the gateway listens, which it does once it has read all decisions."""
        try:
            socket.create_connection((self.voter.host, self.voter.port), _CONNECT_TIMEOUT_S).close()
        except OSError:
            return False
        return True


class GatewayProcess(GatewayService):
    """A gateway on the bus ``bus``, to brokers of Kafka 4. ``copies`` are brokers' directories of the metadata log."""

    kind = "kraft"

    def __init__(
        self,
        voter: Voter,
        voters: Sequence[Voter],
        cluster_id: str,
        bus: str,
        folder: Path,
        settings: Mapping[str, str] = MappingProxyType({}),
        copies: Sequence[Path] = (),
    ) -> None:
        self.copies = tuple(copies)
        self.log_directory = folder.resolve() / "log"
        places = {
            "metadata.log.dir": str(self.log_directory),
            "authorizer.log.dir": str(folder.resolve()),
            "rebuild.from.dirs": ",".join(map(str, copies)),
        }
        super().__init__(voter, voters, cluster_id, bus, folder, places | dict(settings))


class ZookeeperGatewayProcess(GatewayService):
    """A gateway to brokers that use the ZooKeeper at ``zookeeper``. It listens once a gateway is their controller."""

    kind = "zookeeper"

    def __init__(
        self,
        voter: Voter,
        voters: Sequence[Voter],
        cluster_id: str,
        zookeeper: str,
        bus: str,
        folder: Path,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        adopts: bool = False,
    ) -> None:
        own = {"zookeeper.connect": zookeeper, **settings}
        super().__init__(voter, voters, cluster_id, bus, folder, own, ["--adopt"] if adopts else [])
