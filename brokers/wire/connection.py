"""A connection to a broker that carries frames: one request, then its response."""

import asyncio

from brokers.wire.catalogue import framed
from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError


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
