"""The client's end of a connection: one request, then its response."""

import asyncio
from typing import Any

from kafka.protocol.api_header import ResponseClassRegistry

from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError, encode_request
from brokers.wire.opening import opened


class Connection:
    """An open connection to a broker. Any error closes it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client_id: str, limit: int) -> None:
        self._reader = reader
        self._writer = writer
        self._client_id = client_id
        self._limit = limit
        self._correlation_id = 0

    @classmethod
    async def open(cls, host: str, port: int, client_id: str, timeout_ms: int, limit: int) -> "Connection":
        """Connect to a broker whose responses may have up to ``limit`` bytes. Raises OSError or TimeoutError."""
        async with asyncio.timeout(timeout_ms / 1000):
            reader, writer = await opened(host, port)
        return cls(reader, writer, client_id, limit)

    async def ask(self, body: Any, timeout_ms: int) -> Any:
        """Send ``body`` in its version, and return the decoded response.

        Raises OSError, TimeoutError or WireError.
        """
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                self._writer.write(encode_request(body, self._correlation_id, self._client_id))
                await self._writer.drain()
                frame = await self._frame()
            return self._decoded(body, frame)
        except asyncio.IncompleteReadError as error:
            self.close()
            raise ConnectionResetError("the broker closed the connection") from error
        except BaseException:
            self.close()
            raise

    async def _frame(self) -> bytes:
        size = int.from_bytes(await self._reader.readexactly(FRAME_LENGTH_BYTES), "big", signed=True)
        if not 0 < size <= self._limit:
            raise WireError(f"a response of {size} bytes; the limit is {self._limit}")
        return await self._reader.readexactly(size)

    def _decoded(self, body: Any, frame: bytes) -> Any:
        shape = ResponseClassRegistry._response_class_registry[body.API_KEY]
        try:
            response = shape.decode(frame, version=body.API_VERSION, header=True)
        except Exception as error:  # on bad bytes the codec may raise anything
            raise WireError(f"a response that cannot be read: {type(error).__name__}: {error}") from error
        if response.header.correlation_id != self._correlation_id:
            raise WireError("a response to another request")
        return response

    def close(self) -> None:
        self._writer.close()
