"""The way of clients into a gateway: TLS, then a certificate or SASL, and the principal that follows."""

import asyncio
import ssl
from collections.abc import Callable
from typing import cast

from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.security.authorization import ANONYMOUS
from brokers.gateways.kraft.security.principals import Subject
from brokers.gateways.kraft.security.sasl import VERIFIERS, SaslExchange
from brokers.gateways.kraft.security.settings import Security
from brokers.wire.schema import Values
from brokers.wire.server import NotAuthenticatedError, Server
from conf.security.reread import LOOK_INTERVAL_S


async def end_removed_users(security: Security, server: Server) -> None:
    """End the connections of users who are no longer in the file, until cancelled."""
    credentials = security.credentials
    while credentials is not None:
        await asyncio.sleep(LOOK_INTERVAL_S)
        # In a thread, because a changed file is read there.
        users = await asyncio.get_running_loop().run_in_executor(VERIFIERS, credentials.users)
        known = {f"User:{user}" for user in users}
        server.end_those(lambda peer, known=known: peer.principal not in known)  # type: ignore[misc]


class GatewayDoor:
    """The way into one gateway. ``api_versions`` answers that request, which clients of SASL begin with."""

    def __init__(self, security: Security, api_versions: Callable[[Request], Values], handshake_timeout_s: float):
        self._security = security
        self._api_versions = api_versions
        self._handshake_timeout_s = handshake_timeout_s

    async def admit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> str:
        """Return the client's principal (``brokers.wire.server.Door``)."""
        security = self._security
        if security.tls is not None:
            # First of all, before the event loop reads anything of the connection.
            await writer.start_tls(security.tls, ssl_handshake_timeout=self._handshake_timeout_s)
        if security.credentials is not None:
            exchange = SaslExchange(reader, writer, security.mechanisms, security.credentials, self._api_versions)
            return f"User:{await exchange.user()}"
        return self._of_certificate(writer)

    def _of_certificate(self, writer: asyncio.StreamWriter) -> str:
        connection = writer.get_extra_info("ssl_object")
        certificate = connection.getpeercert() if isinstance(connection, ssl.SSLObject) else None
        if not certificate:
            return ANONYMOUS
        principal = self._security.rules.principal_of(cast(Subject, certificate.get("subject", ())))
        if principal is None:
            raise NotAuthenticatedError("no rule of ssl.principal.mapping.rules applies to the certificate")
        return principal
