"""Limits on the server's connections: on their number, on their clients' silence, and on a TLS handshake."""

import asyncio
import contextlib
import socket
import ssl
import time
import weakref
from collections.abc import Collection
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# A connection ends after one to two of these if its client sends no whole request head, or takes nothing of its answer.
SILENCE_S = 5.0
HANDSHAKE_S = 5.0
SOCKETS_MAX = 256


class BoundedProtocol(H11Protocol):
    """A connection of uvicorn's that is closed if its client falls silent.

    Uvicorn itself limits only the pause between two requests.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._silent_since_s = time.monotonic()
        self._former: object = self
        self._look()

    def on_response_complete(self) -> None:
        self._silent_since_s = time.monotonic()
        super().on_response_complete()

    @property
    def descriptor(self) -> int:
        """The file descriptor of its socket, or -1 if that is closed."""
        # With TLS, a connection that has just ended no longer has a socket.
        held = self.transport.get_extra_info("socket")
        return -1 if held is None else int(held.fileno())

    @property
    def silent_since_s(self) -> float | None:
        """Since when it has waited for a whole request head, by the steady clock; None if it is in use."""
        return self._silent_since_s if self.cycle is None or self.cycle.response_complete else None

    def _look(self) -> None:
        waited_for = self._waited_for()
        if waited_for is not None and waited_for == self._former:
            self.transport.abort()
            return
        self._former = waited_for
        self._timer = self.loop.call_later(SILENCE_S, self._look)

    def _waited_for(self) -> object:
        """Return what the connection waits for from its client, or None if it waits for nothing."""
        if self.transport.is_closing():
            return ("end",)
        if self.flow.write_paused:
            return ("write", self.transport.get_write_buffer_size())
        if self.cycle is None or self.cycle.response_complete:
            return ("head", self._silent_since_s)
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)


class BoundedListener(socket.socket):
    """A listening socket that keeps at most ``SOCKETS_MAX`` connections, those in a handshake included.

    When it is full, a new connection takes the place of the one that has been silent longest. Otherwise silent clients
    would keep out a supervisor, which would restart an engine that works. A connection in use keeps its place. Requests
    are counted elsewhere (``request_limit.py``), and only when TLS is done.
    """

    __slots__ = ("_accepted_s", "_closing", "_connections")

    def __init__(self, listening: socket.socket, connections: Collection[BoundedProtocol]) -> None:
        """Take over ``listening``. ``connections`` always has the connections that are past their handshake."""
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._connections = connections
        self._accepted_s: weakref.WeakKeyDictionary[socket.socket, float] = weakref.WeakKeyDictionary()
        self._closing: socket.socket | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        if self._closing is not None and self._closing.fileno() >= 0:
            # The event loop asks again when it has closed that one.
            raise BlockingIOError
        accepted, address = super().accept()
        held = [one for one in self._accepted_s if one.fileno() >= 0]
        if len(held) >= SOCKETS_MAX:
            self._closing = self._silent_longest(held)
            if self._closing is None:
                accepted.close()
                # This tells the event loop that no further connection is waiting at the moment.
                raise BlockingIOError
            _end(self._closing)
        self._accepted_s[accepted] = time.monotonic()
        return accepted, address

    def _silent_longest(self, held: list[socket.socket]) -> socket.socket | None:
        """Return the connection that has waited longest for a whole request head; None if all are in use."""
        silent_s = {one.descriptor: one.silent_since_s for one in self._connections}
        # A connection without a protocol is in its handshake.
        since_s = {one: silent_s.get(one.fileno(), self._accepted_s[one]) for one in held}
        return min((one for one in held if since_s[one] is not None), key=lambda one: since_s[one] or 0, default=None)


def _end(connection: socket.socket) -> None:
    # The event loop owns it, so it is not closed here. The loop takes it for one whose client left.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class HandshakeLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers give a TLS handshake some seconds instead of a minute."""

    async def create_server(self, *given: Any, **named: Any) -> Any:
        if isinstance(named.get("ssl"), ssl.SSLContext):
            named |= {"ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": HANDSHAKE_S}
        return await super().create_server(*given, **named)
