"""A proxy for requests that are not the controller's: a broker answers them.

Clients find the gateway among the brokers, because they must reach it as the controller. So it must answer like any
broker, and passes such requests on to one.
"""

import asyncio
import random

from brokers.gateways.zk.channels.requests.building import listener_named
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Settings
from brokers.wire.catalogue import API_VERSIONS_KEY
from brokers.wire.connection import FrameConnection
from brokers.wire.messages import WireError
from brokers.wire.server import Peer
from state.registration import Listener

# How long one of several brokers may take before another one is asked.
SOON_MS = 2_000


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
        async with way.turn:
            try:
                if way.connection is None:
                    return await self._asked_of_any(way, frame)
                return await way.connection.ask(frame, self._settings.controller_socket_timeout_ms)
            except (OSError, TimeoutError) as error:
                way.connection = None
                raise WireError(f"no broker answers: {error}") from error

    async def _asked_of_any(self, way: _Way, frame: bytes) -> bytes:
        """Return the answer of the first broker that gives one.

        A broker that has just died may still be listed as live, and a frozen one accepts connections. So the first
        request on a connection, which changes nothing (ApiVersions), soon goes to another broker. Brokers send it to
        their controller before they ask for an ISR.
        """
        timeout_ms = self._settings.controller_socket_timeout_ms
        is_first = frame[:2] == API_VERSIONS_KEY.to_bytes(2, "big")
        listeners = [held.listeners for held in self._view.live if held.listeners]
        random.shuffle(listeners)
        for number, one in enumerate(listeners, 1):
            try:
                way.connection = await self._open(listener_named(one, self._settings.inter_broker_listener_name))
            except (OSError, TimeoutError):
                continue
            try:
                is_last = number == len(listeners)
                return await way.connection.ask(frame, timeout_ms if is_last or not is_first else SOON_MS)
            except (OSError, TimeoutError):
                way.connection = None
                if not is_first:
                    raise
        raise ConnectionRefusedError("no broker lives")

    async def _open(self, to: Listener) -> FrameConnection:
        return await FrameConnection.open(to.host, to.port, SOON_MS, self._settings.response_max_bytes)

    def close(self, peer: Peer) -> None:
        """Forget a client that is gone."""
        way = self._ways.pop(peer, None)
        if way is not None and way.connection is not None:
            way.connection.close()
