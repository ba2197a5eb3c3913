"""How long the server waits for clients: a connection that does not move for a while ends."""

import asyncio
import socket
import ssl
import weakref
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# A connection ends after one to two of these if its client sends no whole request head, or takes nothing of its answer.
PATIENCE_S = 5.0
HANDSHAKE_S = 5.0
SOCKETS_MAX = 256


class PatientProtocol(H11Protocol):
    """A connection of uvicorn's that ends when its client stops.

    Uvicorn itself limits only the pause between two requests.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._former: object = self
        self._look()

    def _look(self) -> None:
        stands = self._stands()
        if stands is not None and stands == self._former:
            self.transport.abort()
            return
        self._former = stands
        self._timer = self.loop.call_later(PATIENCE_S, self._look)

    def _stands(self) -> object:
        """Return what the connection waits for from its client, or None if it waits for nothing."""
        if self.transport.is_closing():
            return ("end",)
        if self.flow.write_paused:
            return ("write", self.transport.get_write_buffer_size())
        if self.cycle is None or self.cycle.response_complete:
            return ("head", id(self.cycle))
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)


class BoundedListener(socket.socket):
    """A listening socket that keeps at most ``SOCKETS_MAX`` connections, those in a handshake included.

    Requests are counted elsewhere (``request_limit.py``), and only when TLS is done.
    """

    __slots__ = ("_accepted",)

    def __init__(self, listening: socket.socket) -> None:
        """Take over ``listening``."""
        super().__init__(listening.family, listening.type, listening.proto, fileno=listening.detach())
        self._accepted: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    def accept(self) -> tuple[socket.socket, Any]:
        accepted, address = super().accept()
        if sum(one.fileno() >= 0 for one in self._accepted) >= SOCKETS_MAX:
            accepted.close()
            # This tells the event loop that no further connection is waiting at the moment.
            raise BlockingIOError
        self._accepted.add(accepted)
        return accepted, address


class HandshakeLoop(asyncio.SelectorEventLoop):
    """An event loop whose servers give a TLS handshake some seconds instead of a minute."""

    async def create_server(self, *given: Any, **named: Any) -> Any:
        if isinstance(named.get("ssl"), ssl.SSLContext):
            named |= {"ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": HANDSHAKE_S}
        return await super().create_server(*given, **named)
