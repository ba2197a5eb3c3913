"""A gateway as a process, started and found again like the brokers that it leads."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from brokers.launch.service import Service
from brokers.voters import Voter, text_of
from conf.python import PYTHON

_CONNECT_TIMEOUT_S = 0.5


class GatewayProcess(Service):
    """One gateway on the bus ``bus``, with its files in ``folder``.

    ``settings`` are the gateway's own, by their names with dots. ``copies`` are brokers' directories of the metadata
    log.
    """

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
        super().__init__(f"gateway {voter.voter}", folder, "gateway.log")
        self.voter = voter
        self.copies = tuple(copies)
        self.log_directory = self.folder / "log"
        self.settings = dict(settings)
        self._arguments = [
            *("--gateway", str(voter.voter)),
            *("--voters", text_of(tuple(voters))),
            *("--cluster-id", cluster_id),
            *("--bus", bus),
            *("--dir", str(self.log_directory)),
            *(part for copy in copies for part in ("--rebuild-from", str(copy))),
        ]

    def command(self) -> list[str]:
        sets = (part for key, value in self.settings.items() for part in ("--set", f"{key}={value}"))
        return [*PYTHON, "-m", "brokers.gateways.kraft", *self._arguments, *sets]

    def is_ready(self) -> bool:
        """Say whether the gateway listens, which it does once it has read all decisions."""
        try:
            socket.create_connection((self.voter.host, self.voter.port), _CONNECT_TIMEOUT_S).close()
        except OSError:
            return False
        return True
