"""A TCP server of the Kafka protocol: frames come in, responses go out in the order in which the requests came."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

import msgspec
import structlog

from brokers.wire.admission import Admission
from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError
from brokers.wire.rooms import LARGE_REQUEST_BYTES, START_BYTES, DecodedBytesMax, IsQuick, Rooms


class Peer:
    """One open connection: the principal and the host at its other end."""

    def __init__(self, principal: str = "", host: str = "") -> None:
        # In Kafka's form; empty if the server does not authenticate.
        self.principal = principal
        self.host = host


class NotAuthenticatedError(Exception):
    """A client did not prove who it is, so its connection ends."""


class Door(Protocol):
    """The check that lets clients in, or keeps them out."""

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Return the principal at the other end of a new connection.

        It may read and write, and change the connection to TLS. Raises ``NotAuthenticatedError``, ``OSError``,
        ``EOFError`` or ``WireError``.
        """
        ...


# Turns a request's frame into the response as it is sent, length prefix included. None means no response. Raises
# ``WireError`` if the connection must be closed.
Answer = Callable[[bytes, Peer], Awaitable[bytes | None]]
Gone = Callable[[Peer], None]
# The keys of Fetch and FetchSnapshot, with which their frames begin.
_LONG_ANSWERED = (b"\x00\x01", b"\x00\x3b")

logger = structlog.get_logger()


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on what clients may use. Names are Kafka's where Kafka has one."""

    socket_request_max_bytes: int = 100 * 1024 * 1024
    max_connections: int = 1_000
    max_connections_per_ip: int = 1_000
    # With a ``Door``: how many connections may be unauthenticated, and for how long.
    max_connections_unauthenticated: int = 200
    authentication_timeout_ms: int = 10_000
    connections_max_idle_ms: int = 600_000
    requests_in_flight: int = 64
    write_timeout_ms: int = 30_000
    queued_max_request_bytes: int = 256 * 1024 * 1024
    large_request_timeout_ms: int = 30_000


class Server:
    """A listening socket whose requests go to ``answer``; ``gone`` is called for each connection that ends.

    Several requests of a connection may wait at once. A Kafka broker is stricter: it takes the next request only when
    the last was answered. Requests of a connection are begun in the order of arrival. Their work may overlap and end
    in another order, as large requests are decoded in another thread. Responses leave in the order of arrival.
    """

    def __init__(
        self,
        answer: Answer,
        limits: Limits,
        gone: Gone = lambda peer: None,
        door: Door | None = None,
        decoded_bytes_max: DecodedBytesMax = lambda size: 0,
        is_quick: IsQuick = lambda start: False,
    ) -> None:
        self._answer = answer
        self._limits = limits
        self._gone = gone
        self._door = door
        self._server: asyncio.Server | None = None
        self._peers: dict[asyncio.Task[None], Peer] = {}
        self._connections = Admission(
            total_max=limits.max_connections,
            host_max=limits.max_connections_per_ip,
            unauthenticated_max=limits.max_connections_unauthenticated,
        )
        waiting, quick = (Rooms(limits.queued_max_request_bytes, decoded_bytes_max) for _ in range(2))
        self._rooms_of = lambda start: quick if is_quick(start) else waiting

    async def start(self, host: str, port: int) -> int:
        """Listen, and return the port that was bound."""
        self._server = await asyncio.start_server(self._accepted, host, port, backlog=128)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Close the socket and every connection."""
        if self._server is not None:
            self._server.close()
        tasks = self._connections.tasks
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def end_those(self, is_unwanted: Callable[[Peer], bool]) -> None:
        """End the connections of the peers that are unwanted."""
        for task, peer in self._peers.items():
            if is_unwanted(peer):
                logger.info("connection ended", principal=peer.principal, host=peer.host)
                task.cancel()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        # None if the client has already left.
        address = writer.get_extra_info("peername") or ("",)
        host = str(address[0])
        if not self._connections.enter(task, host, is_authenticated=self._door is None):
            writer.close()
            return
        try:
            principal = await self._admitted(reader, writer, host) if self._door else ""
            if principal is None:
                return
            self._connections.authenticated(task)
            peer = self._peers[task] = Peer(principal, host)
            try:
                await _Connection(self._answer, self._limits, self._rooms_of, reader, writer, peer).serve()
            finally:
                del self._peers[task]
                self._gone(peer)
        finally:
            self._connections.leave(task)

    async def _admitted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> str | None:
        """Return the client's principal. If it does not prove one in time, close the connection and return None."""
        assert self._door is not None
        try:
            async with asyncio.timeout(self._limits.authentication_timeout_ms / 1000):
                return await self._door.admit(reader, writer)
        except (NotAuthenticatedError, WireError, OSError, EOFError, TimeoutError) as error:
            logger.info("not authenticated", host=host, why=str(error) or type(error).__name__)
        except asyncio.CancelledError:
            # The server stops, or needs the place. The connection ends, and no other task waits for this one.
            logger.debug("connection ended before it was authenticated", host=host)
        # Nothing is owed to this client, so its socket is not kept until it takes what was sent.
        writer.transport.abort()
        return None


class _Connection:
    def __init__(
        self,
        answer: Answer,
        limits: Limits,
        rooms_of: Callable[[bytes], Rooms],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        peer: Peer,
    ) -> None:
        self._peer = peer
        self._answer = answer
        self._limits = limits
        self._rooms_of = rooms_of
        self._reader = reader
        self._writer = writer
        self._answers: asyncio.Queue[asyncio.Future[bytes | None]] = asyncio.Queue(limits.requests_in_flight)

    async def serve(self) -> None:
        """Read and write until the client leaves, a request cannot be answered, or the server stops."""
        sides = [asyncio.create_task(self._read()), asyncio.create_task(self._write())]
        try:
            await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            pass  # the server stops, so the connection ends as if the client had gone
        finally:
            for side in sides:
                side.cancel()
            while not self._answers.empty():
                self._answers.get_nowait().cancel()
            await asyncio.gather(*sides, return_exceptions=True)
            self._writer.close()
            with contextlib.suppress(OSError):
                try:
                    await asyncio.wait_for(self._writer.wait_closed(), 1)
                except TimeoutError:
                    self._writer.transport.abort()

    async def _read(self) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, OSError, TimeoutError):
            while True:
                async with asyncio.timeout(self._limits.connections_max_idle_ms / 1000):
                    framed = await self._frame()
                if framed is None:
                    return
                frame, rooms = framed
                answer = asyncio.ensure_future(self._answer(frame, self._peer))
                answer.add_done_callback(partial(rooms.free_both, len(frame)))
                # A full queue stops the reading, so the client waits in TCP and not in our memory.
                await self._put(answer)

    async def _frame(self) -> tuple[bytes, Rooms] | None:
        """Read a frame when there is room for it. Return it with the rooms that it takes; None if its size is wrong."""
        size = int.from_bytes(await self._reader.readexactly(FRAME_LENGTH_BYTES), "big", signed=True)
        if not 0 < size <= self._limits.socket_request_max_bytes:
            logger.warning("connection closed", why="a request size out of bounds", size=size)
            return None
        start = await self._reader.readexactly(min(size, START_BYTES))
        rooms = self._rooms_of(start)
        left = size - len(start)
        frame = start + await (
            self._reader.readexactly(left) if size <= LARGE_REQUEST_BYTES else self._large(size, left, rooms)
        )
        try:
            if frame.startswith(_LONG_ANSWERED):
                # Its answer may be as long as all others together, so it waits until they are written.
                await self._answers.join()
            # Only now, so that a client that sends or reads slowly does not keep this room from others.
            await rooms.take_decoded(size)
        except BaseException:
            rooms.free_frame(size)
            raise
        return frame, rooms

    async def _large(self, size: int, left: int, rooms: Rooms) -> bytes:
        """Read what is left of a large request within a bound, because others wait for the room that it takes."""
        await rooms.take_frame(size)
        try:
            async with asyncio.timeout(self._limits.large_request_timeout_ms / 1000):
                return await self._reader.readexactly(left)
        except BaseException:
            rooms.free_frame(size)
            raise

    async def _put(self, answer: "asyncio.Future[bytes | None]") -> None:
        try:
            await self._answers.put(answer)
        except asyncio.CancelledError:
            # The connection ends while the queue is full, so no other task knows of this request.
            answer.cancel()
            raise

    async def _write(self) -> None:
        while True:
            answer = await self._answers.get()
            try:
                data = await answer
            except WireError as error:
                logger.warning("connection closed", why=str(error))
                return
            except asyncio.CancelledError:
                raise
            except Exception:
                logger.exception("connection closed", why="a request failed")
                return
            try:
                self._writer.write(data or b"")
                async with asyncio.timeout(self._limits.write_timeout_ms / 1000):
                    await self._writer.drain()
            except (OSError, TimeoutError):
                return
            self._answers.task_done()
