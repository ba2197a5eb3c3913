"""Regular probes of the brokers, because brokers in ZooKeeper mode rarely ask their controller anything.

Every gateway probes in the same way, whether it leads or not. So the engine can compare which brokers each one reaches.
"""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import NoReturn

from brokers.gateways.shared.file_settings import Asked
from brokers.gateways.shared.heard_brokers import HeardBrokers
from brokers.gateways.zk.channels.requests.building import listener_named
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Settings
from brokers.wire.catalogue import API_VERSIONS_KEY
from brokers.wire.connection import FrameConnection
from brokers.wire.messages import WireError
from state.registration import Listener

# How often a broker is asked in the time for which an answer counts. Two gateways that reach the same brokers name the
# same ones long before a difference between them counts.
PER_TIMEOUT = 4

# ApiVersions in version 0, without a client's name. Every broker answers it to every client.
_QUESTION = API_VERSIONS_KEY.to_bytes(2, "big") + bytes(6) + (-1).to_bytes(2, "big", signed=True)


class Probing:
    """The probes of the live brokers, each on a connection of its own, and one at a time for each broker."""

    def __init__(self, view: ClusterView, settings: Settings) -> None:
        self._view = view
        self._settings = settings
        self._timeout_ms = settings.controller_quorum_fetch_timeout_ms
        self._heard = HeardBrokers(self._timeout_ms, self._timeout_ms)
        self._connections: dict[int, tuple[Listener, FrameConnection]] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    @property
    def heard(self) -> tuple[int, ...]:
        """The brokers that answered lately."""
        return self._heard.lately(leads=True)

    def told(self, late_ms: int, *, leads: bool) -> tuple[int, ...]:
        """Return the brokers to name in a heartbeat of this process, which was held up for ``late_ms``."""
        self._heard.forgive(late_ms)
        return self._heard.told(leads=leads, live=[held.broker for held in self._view.live])

    async def run(self) -> NoReturn:
        """Probe until cancelled."""
        try:
            while True:
                listeners = {held.broker: held.listeners for held in self._view.live if held.listeners}
                for broker in self._connections.keys() - listeners.keys() - self._running.keys():
                    self._disconnect(broker)
                for broker in listeners.keys() - self._running.keys():
                    listener = listener_named(listeners[broker], self._settings.inter_broker_listener_name)
                    probe = self._running[broker] = asyncio.create_task(self._probe(broker, listener))
                    probe.add_done_callback(partial(self._end, broker))
                await asyncio.sleep(self._timeout_ms / PER_TIMEOUT / 1000)
        finally:
            for probe in self._running.values():
                probe.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)
            for broker in list(self._connections):
                self._disconnect(broker)

    async def _probe(self, broker: int, listener: Listener) -> None:
        """Ask a broker once. An old connection that is lost proves nothing, so a new one is tried."""
        known = self._connections.get(broker)
        if known is not None and known[0] != listener:
            self._disconnect(broker)
        for _ in range(2):
            is_new = broker not in self._connections
            try:
                if is_new:
                    bytes_max = self._settings.response_max_bytes
                    opened = await FrameConnection.open(listener.host, listener.port, self._timeout_ms, bytes_max)
                    self._connections[broker] = (listener, opened)
                await self._connections[broker][1].ask(_QUESTION, self._timeout_ms)
                self._heard.hear(broker)
                return
            except (OSError, TimeoutError, WireError):
                self._disconnect(broker)
                if is_new:
                    return

    def _end(self, broker: int, _probe: asyncio.Task[None]) -> None:
        del self._running[broker]

    def _disconnect(self, broker: int) -> None:
        known = self._connections.pop(broker, None)
        if known is not None:
            known[1].close()


def serving(view: ClusterView, leads: bool) -> Iterator[Asked]:
    """Yield the live brokers if this gateway leads, and where to ask them."""
    for held in view.live if leads else ():
        plain = [(one.host, one.port) for one in held.listeners or () if one.protocol == "PLAINTEXT"]
        yield Asked(held.broker, held.broker_epoch, plain[0] if plain else None)
