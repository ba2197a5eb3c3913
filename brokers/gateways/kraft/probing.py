"""Probes of a broker whose connection ended. It has died if its port refuses connections.

A connection ends for many reasons. A killed process may still accept a connection for some milliseconds while the
kernel takes it down, so the port is tried more than once. A port that refuses at all addresses of its host proves that
no process listens there. A port that accepts, or a host that does not answer, proves nothing, and the session decides.
"""

import asyncio
import errno
import socket
from collections.abc import Callable, Iterable, Iterator

import structlog

from brokers.gateways.kraft.following.quorum_view import QuorumView
from brokers.gateways.kraft.metadata.image import Registration
from brokers.gateways.shared.file_settings import Asked
from brokers.gateways.shared.security_protocols import PROTOCOLS
from bus.clock import now_ms
from state.events import BrokerConnectionLost

logger = structlog.get_logger()

PLAINTEXT = PROTOCOLS["PLAINTEXT"]
DEADLINE_S = 0.5
PAUSE_S = 0.02

# This machine has no network of that kind, such as IPv6, or no route into it.
_NO_WAY = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.ENETUNREACH})

Endpoint = tuple[str, int]


class Probes:
    """The probes of brokers that may have died, one at a time for each; ``tell`` publishes what is found."""

    def __init__(
        self,
        quorum_view: QuorumView,
        registration_of: Callable[[int], Registration | None],
        tell: Callable[[BrokerConnectionLost], None],
    ) -> None:
        self._quorum_view = quorum_view
        self._registration_of = registration_of
        self._tell = tell
        self._running: dict[int, asyncio.Future[None]] = {}

    def begin(self, broker: int) -> None:
        """Probe a broker that has no open connection for heartbeats.

        Only the leading gateway gets heartbeats, so no other one probes.
        """
        if self._quorum_view.leads and broker not in self._running and not self._quorum_view.is_connected(broker):
            probe = asyncio.ensure_future(self._probe(broker))
            self._running[broker] = probe
            probe.add_done_callback(lambda done: self._running.pop(broker, None))

    async def _probe(self, broker: int) -> None:
        known, registered = self._quorum_view.brokers.get(broker), self._registration_of(broker)
        if known is None or registered is None or not known.has_served:
            # A broker that is still starting does not listen yet.
            return
        endpoints = [(host, port) for _, host, port, _ in registered.endpoints]
        if await is_refused(endpoints) and self._quorum_view.leads:
            logger.info("connection lost", broker=broker)
            self._tell(BrokerConnectionLost(time_ms=now_ms(), broker=broker, broker_epoch=known.broker_epoch))

    async def close(self) -> None:
        """End the probes that are under way, and wait for that."""
        probes = list(self._running.values())
        for probe in probes:
            probe.cancel()
        await asyncio.gather(*probes, return_exceptions=True)


def serving(quorum_view: QuorumView, registration_of: Callable[[int], Registration | None]) -> Iterator[Asked]:
    """Yield the brokers that have served, while this gateway leads, and where to ask them."""
    for number, known in quorum_view.brokers.items() if quorum_view.leads else ():
        registered = registration_of(number)
        if known.has_served and registered is not None:
            plain = [(host, port) for _, host, port, protocol in registered.endpoints if protocol == PLAINTEXT]
            yield Asked(number, known.broker_epoch, plain[0] if plain else None)


async def is_refused(endpoints: Iterable[Endpoint]) -> bool:
    """Return whether all of a broker's endpoints refuse connections. Try them for half a second."""
    listed = list(endpoints)
    try:
        async with asyncio.timeout(DEADLINE_S):
            while listed:
                if all([await _refuses(host, port) for host, port in listed]):
                    return True
                await asyncio.sleep(PAUSE_S)
    except TimeoutError:
        pass
    return False


async def _refuses(host: str, port: int) -> bool:
    """Return whether the port refuses at every address of its host that this machine can reach."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        # The host's name is unknown or malformed.
        return False
    codes = {await _error_at(*place[:2]) for *_, place in found} - _NO_WAY
    return codes == {errno.ECONNREFUSED}


async def _error_at(address: str, port: int) -> int | None:
    try:
        _, writer = await asyncio.open_connection(address, port)
    except OSError as error:
        return error.errno
    writer.close()
    return None
