"""A connection to a listener that may ask for TLS and SASL: the side that connects."""

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple

import msgspec

from brokers.wire.catalogue import Catalogue
from brokers.wire.connection import FrameConnection
from brokers.wire.messages import WireError
from brokers.wire.schema import Values
from brokers.wire.security.scram import ScramClient, ScramError

PLAIN = "PLAIN"
HANDSHAKE_KEY, AUTHENTICATE_KEY = 17, 36
# Version 0 is not used: proofs are not Kafka requests there, and clients have not used it for years.
HANDSHAKE_VERSION = 1
AUTHENTICATE_VERSION_MAX = 2
FRAME_BYTES_MAX = 64 * 1024
_CATALOGUE = Catalogue("brokers.wire.security")


class Client(msgspec.Struct, frozen=True):
    """The means by which a process connects to a listener."""

    tls: Callable[[], ssl.SSLContext] | None = None
    # Empty without SASL.
    mechanism: str = ""
    user: str = ""
    password: Callable[[], str] = lambda: ""


class Opened(NamedTuple):
    """An open connection, over which requests may be sent."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    # How long the other side takes requests without another proof (KIP-368); 0 stands for no limit.
    lifetime_ms: int = 0


class NotLetInError(OSError):
    """The other side does not accept this side's identity."""


async def connect(host: str, port: int, client: Client, client_id: str) -> Opened:
    """Open a connection. The caller bounds the time. Raises ``OSError`` or ``EOFError``."""
    context = client.tls() if client.tls else None
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        lifetime_ms = await _prove(reader, writer, client, client_id) if client.mechanism else 0
    except BaseException:
        writer.close()
        raise
    return Opened(reader, writer, lifetime_ms)


async def _prove(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: Client, client_id: str) -> int:
    """Prove who this side is, and return for how many milliseconds this is believed."""
    connection = FrameConnection(reader, writer, FRAME_BYTES_MAX)

    async def ask(key: int, version: int, **values: object) -> Values:
        await connection.send(_CATALOGUE.encode_request(key, version, 0, client_id, values))
        answer = _CATALOGUE.decode_response(key, version, await connection.receive()).values
        if answer["ErrorCode"]:
            raise NotLetInError(f"{client.mechanism} of {client.user!r} is refused with error {answer['ErrorCode']}")
        return answer

    async def prove(data: bytes) -> Values:
        return await ask(AUTHENTICATE_KEY, AUTHENTICATE_VERSION_MAX, AuthBytes=data)

    try:
        await ask(HANDSHAKE_KEY, HANDSHAKE_VERSION, Mechanism=client.mechanism)
        if client.mechanism == PLAIN:
            answer = await prove(f"\0{client.user}\0{client.password()}".encode())
        else:
            exchange = ScramClient(client.mechanism, client.user, client.password())
            challenge = bytes((await prove(exchange.first()))["AuthBytes"] or b"")
            answer = await prove(exchange.final(challenge))
            exchange.verify(bytes(answer["AuthBytes"] or b""))
    except (WireError, ScramError, ValueError) as error:
        raise NotLetInError(str(error)) from error
    return int(answer["SessionLifetimeMs"])
