"""A connection to a gateway, by its security settings: TLS with this side's certificate, then SASL."""

import asyncio

from brokers.gateways.kraft.messages import decode_response, encode_request
from brokers.gateways.kraft.security.credentials import PLAIN
from brokers.gateways.kraft.security.sasl import (
    AUTHENTICATE_KEY,
    AUTHENTICATE_VERSION_MAX,
    FRAME_BYTES_MAX,
    HANDSHAKE_KEY,
    HANDSHAKE_VERSION,
)
from brokers.gateways.kraft.security.scram import ScramClient, ScramError
from brokers.gateways.kraft.security.settings import Client
from brokers.wire.connection import FrameConnection
from brokers.wire.messages import WireError
from brokers.wire.schema import Values

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class NotLetInError(OSError):
    """The other side does not accept this side's identity."""


async def connect(host: str, port: int, client: Client) -> Streams:
    """Open a connection. The caller bounds the time. Raises ``OSError`` or ``EOFError``."""
    context = client.tls() if client.tls else None
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        if client.mechanism:
            await _prove(reader, writer, client)
    except BaseException:
        writer.close()
        raise
    return reader, writer


async def _prove(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, client: Client) -> None:
    connection = FrameConnection(reader, writer, FRAME_BYTES_MAX)

    async def ask(key: int, version: int, **values: object) -> Values:
        await connection.send(encode_request(key, version, 0, "gateway", values))
        answer = decode_response(key, version, await connection.receive()).values
        if answer["ErrorCode"]:
            raise NotLetInError(f"{client.mechanism} of {client.user!r} is refused with error {answer['ErrorCode']}")
        return answer

    async def prove(data: bytes) -> bytes:
        return bytes((await ask(AUTHENTICATE_KEY, AUTHENTICATE_VERSION_MAX, AuthBytes=data))["AuthBytes"] or b"")

    try:
        await ask(HANDSHAKE_KEY, HANDSHAKE_VERSION, Mechanism=client.mechanism)
        if client.mechanism == PLAIN:
            await prove(f"\0{client.user}\0{client.password()}".encode())
            return
        exchange = ScramClient(client.mechanism, client.user, client.password())
        exchange.verify(await prove(exchange.final(await prove(exchange.first()))))
    except (WireError, ScramError, ValueError) as error:
        raise NotLetInError(str(error)) from error
