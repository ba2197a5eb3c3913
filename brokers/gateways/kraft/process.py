"""A gateway as a process of its own, started and found again like the brokers that it leads."""

import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from isrflow.brokers.gateways.kraft.settings import Voter
from isrflow.brokers.kafka.process import DetachedProcess, State

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 20.0
_CONNECT_TIMEOUT_S = 0.5
_POLL_S = 0.05
_TAIL_CHARS = 2_000


class GatewayError(Exception):
    """A gateway that does not do what it was asked; the message says where its log is."""


class GatewayProcess:
    """Start and stop one gateway; its files are under ``folder``."""

    def __init__(self, voter: Voter, voters: Sequence[Voter], cluster_id: str, bus: str, folder: Path) -> None:
        self.voter = voter
        self.folder = folder.resolve()
        self.log = self.folder / "gateway.log"
        self._arguments = [
            *("--gateway", str(voter.voter)),
            *("--voters", ",".join(f"{one.voter}@{one.host}:{one.port}" for one in voters)),
            *("--cluster-id", cluster_id),
            *("--bus", bus),
            *("--dir", str(self.folder / "log")),
        ]
        self._process = DetachedProcess(self.folder / "process.json")

    @property
    def state(self) -> State:
        return self._process.state

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def start(self) -> None:
        """Start the process; it need not listen yet."""
        self.folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "isrflow.brokers.gateways.kraft", *self._arguments]
        self._process.start(command, self.folder, self.log)

    def wait_until_started(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Wait until the gateway listens. Raises ``GatewayError`` when it ends or the time is over."""
        end = time.monotonic() + timeout_s
        while not self._listens():
            if self.state == "stopped":
                raise GatewayError(
                    f"gateway {self.voter.voter} ended by itself; its log {self.log} ends with:\n"
                    f"{self.log.read_text()[-_TAIL_CHARS:]}"
                )
            if time.monotonic() > end:
                raise GatewayError(
                    f"gateway {self.voter.voter} did not listen within {timeout_s:.0f} s; its log is {self.log}"
                )
            time.sleep(_POLL_S)

    def _listens(self) -> bool:
        try:
            socket.create_connection((self.voter.host, self.voter.port), _CONNECT_TIMEOUT_S).close()
        except OSError:
            return False
        return True

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Let the gateway stop in order; after the time-out end it at once, and return False."""
        self.resume()
        self._process.signal(signal.SIGTERM)
        if self._process.wait(timeout_s):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        """End the gateway at once, as a crash would."""
        self._process.kill()

    def pause(self) -> None:
        """Freeze the gateway; its connections stay open and nobody answers."""
        self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let a frozen gateway go on."""
        self._process.signal(signal.SIGCONT)
