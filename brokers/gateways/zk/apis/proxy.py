"""Requests that are not the controller's: passed on to a broker as they are, and its answers brought back.

Clients find the gateway among the brokers, because they must reach it as the controller. So it answers as a broker
would, which is to say that a broker does.
"""

import asyncio
import random

from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.frames import FrameConnection
from brokers.gateways.zk.requests.building import listener_named
from brokers.gateways.zk.settings import Settings
from brokers.wire.messages import WireError
from brokers.wire.server import Peer


class _Way:
    """One client's connection to a broker; requests take turns."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.connection: FrameConnection | None = None


class Proxy:
    """The ways from clients to brokers, one for each connection of a client."""

    def __init__(self, view: ClusterView, settings: Settings) -> None:
        self._view = view
        self._settings = settings
        self._ways: dict[Peer, _Way] = {}

    async def ask(self, frame: bytes, peer: Peer) -> bytes:
        """Return a broker's answer to a frame. Raises ``WireError`` if there is none, which ends the connection."""
        way = self._ways.setdefault(peer, _Way())
        timeout_ms = self._settings.controller_socket_timeout_ms
        async with way.turn:
            try:
                if way.connection is None:
                    way.connection = await self._open(timeout_ms)
                return await way.connection.ask(frame, timeout_ms)
            except (OSError, TimeoutError) as error:
                way.connection = None
                raise WireError(f"no broker answers: {error}") from error

    async def _open(self, timeout_ms: int) -> FrameConnection:
        listeners = [held.listeners for held in self._view.live if held.listeners]
        random.shuffle(listeners)
        for one in listeners:
            found = listener_named(one, self._settings.inter_broker_listener_name)
            try:
                return await FrameConnection.open(found.host, found.port, timeout_ms, self._settings.response_max_bytes)
            except (OSError, TimeoutError):
                continue
        raise ConnectionRefusedError("no broker lives")

    def close(self, peer: Peer) -> None:
        """Forget a client that is gone."""
        way = self._ways.pop(peer, None)
        if way is not None and way.connection is not None:
            way.connection.close()
