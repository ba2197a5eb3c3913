"""A follower's connection to its leader: one request, then its response."""

from brokers.mock.messages import CATALOGUE, Asked
from brokers.wire.catalogue import Values
from brokers.wire.connection import FrameConnection
from brokers.wire.messages import WireError


class Connection:
    """An open connection to a broker. Any error closes it."""

    def __init__(self, frames: FrameConnection, client_id: str) -> None:
        self._frames = frames
        self._client_id = client_id
        self._correlation_id = 0

    @classmethod
    async def open(cls, host: str, port: int, client_id: str, timeout_ms: int, bytes_max: int) -> "Connection":
        """Connect to a broker whose responses have up to ``bytes_max`` bytes. Raises ``OSError``, ``TimeoutError``."""
        return cls(await FrameConnection.open(host, port, timeout_ms, bytes_max), client_id)

    async def ask(self, asked: Asked, timeout_ms: int) -> Values:
        """Send a request, and return its response. Raises ``OSError``, ``TimeoutError`` or ``WireError``."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        key, version, values = asked
        frame = CATALOGUE.encode_request(key, version, self._correlation_id, self._client_id, values)
        answer = await self._frames.ask(frame, timeout_ms)
        try:
            response = CATALOGUE.decode_response(key, version, answer)
            if response.correlation_id != self._correlation_id:
                raise WireError("a response to another request")
        except WireError:
            self.close()
            raise
        return response.values

    def close(self) -> None:
        self._frames.close()
