"""A follower's connection to its leader: one request, then its response."""

from brokers.mock.messages import CATALOGUE, Asked
from brokers.wire.catalogue import Values
from brokers.wire.connection import FrameConnection, RequestConnection


class Connection:
    """An open connection to a broker. Any error closes it."""

    def __init__(self, frames: FrameConnection, client_id: str) -> None:
        self._requests = RequestConnection(frames, CATALOGUE, client_id)

    @classmethod
    async def open(cls, host: str, port: int, client_id: str, timeout_ms: int, bytes_max: int) -> "Connection":
        """Connect to a broker whose responses have up to ``bytes_max`` bytes. Raises ``OSError``, ``TimeoutError``."""
        return cls(await FrameConnection.open(host, port, timeout_ms, bytes_max), client_id)

    async def ask(self, asked: Asked, timeout_ms: int) -> Values:
        """Send a request, and return its response. Raises ``OSError``, ``TimeoutError`` or ``WireError``."""
        key, version, values = asked
        return await self._requests.ask(key, version, values, timeout_ms)

    def close(self) -> None:
        self._requests.close()
