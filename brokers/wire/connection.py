"""A connection that carries frames, or requests of a catalogue: one request, then its response."""

import asyncio
from itertools import count

from brokers.wire.catalogue import Catalogue, Values, framed
from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError

_CORRELATION_ID_MAX = 0x7FFFFFFF


class FrameConnection:
    """An open connection. Any error closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, bytes_max: int) -> None:
        self._reader = reader
        self._writer = writer
        self._bytes_max = bytes_max

    @classmethod
    async def open(cls, host: str, port: int, timeout_ms: int, bytes_max: int) -> "FrameConnection":
        """Connect to a broker whose responses have up to ``bytes_max`` bytes. Raises OSError or TimeoutError."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return cls(*await asyncio.open_connection(host, port), bytes_max)
        except ValueError as error:
            # A name with an empty part, for example, or with a zero byte.
            raise OSError(f"{host!r} is not a name of a host") from error

    async def ask(self, frame: bytes, timeout_ms: int) -> bytes:
        """Send a frame, and return the next one that comes. Raises OSError, TimeoutError or WireError."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self.send(frame)
                return await self.receive()
        except asyncio.IncompleteReadError as error:
            self.close()
            raise ConnectionResetError("the broker closed the connection") from error
        except BaseException:
            self.close()
            raise

    async def send(self, frame: bytes) -> None:
        self._writer.write(framed(frame))
        await self._writer.drain()

    async def receive(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(FRAME_LENGTH_BYTES), "big", signed=True)
        if not 0 < size <= self._bytes_max:
            raise WireError(f"a response of {size} bytes; the limit is {self._bytes_max}")
        return await self._reader.readexactly(size)

    def close(self) -> None:
        self._writer.close()


class RequestConnection:
    """An open connection that carries the requests of a catalogue. Any error closes it."""

    def __init__(self, frames: FrameConnection, catalogue: Catalogue, client_id: str) -> None:
        self._frames = frames
        self._catalogue = catalogue
        self._client_id = client_id
        self._correlation_ids = count(1)

    async def ask(self, key: int, version: int, values: Values, timeout_ms: int) -> Values:
        """Send a request, and return its response. Raises ``OSError``, ``TimeoutError`` or ``WireError``."""
        correlation_id = next(self._correlation_ids) & _CORRELATION_ID_MAX
        frame = self._catalogue.encode_request(key, version, correlation_id, self._client_id, values)
        answer = await self._frames.ask(frame, timeout_ms)
        try:
            response = self._catalogue.decode_response(key, version, answer)
            if response.correlation_id != correlation_id:
                raise WireError("a response to another request")
        except WireError:
            self.close()
            raise
        return response.values

    def close(self) -> None:
        self._frames.close()
