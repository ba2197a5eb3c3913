"""What clients ask of a gateway that is not the controller's: a broker answers, also while another one does not."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec.structs import replace

from brokers.gateways.zk.apis import proxy
from brokers.gateways.zk.apis.proxy import Proxy
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Settings
from brokers.wire.catalogue import framed
from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError
from brokers.wire.server import Peer
from state.registration import Listener
from tests.brokers.gateways.zk.decided import broker

API_VERSIONS, METADATA = b"\x00\x12\x00\x03", b"\x00\x03\x00\x0c"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Take a connection as the kernel does for a frozen process, until the client leaves."""
    await reader.read()
    writer.close()


async def echoing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while size := await reader.read(FRAME_LENGTH_BYTES):
        writer.write(framed(await reader.readexactly(int.from_bytes(size, "big"))))
    writer.close()


async def answers(brokers: list[Serve], *frames: bytes) -> list[bytes]:
    """Ask one client's frames of brokers, the first of which is tried first."""
    view, servers = ClusterView(), []
    for number, serve in enumerate(brokers, 1):
        servers.append(server := await asyncio.start_server(serve, "127.0.0.1", 0))
        port = server.sockets[0].getsockname()[1]
        view.apply(replace(broker(number), listeners=(Listener("PLAINTEXT", "127.0.0.1", port),)))
    passing, peer = Proxy(view, Settings(controller_socket_timeout_ms=500)), Peer()
    try:
        return [await passing.ask(frame, peer) for frame in frames]
    finally:
        passing.close(peer)
        for server in servers:
            server.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proxy, "SOON_MS", 100)
    monkeypatch.setattr(proxy.random, "shuffle", lambda listeners: None)


def test_the_first_request_of_a_client_is_answered_while_a_broker_is_frozen() -> None:
    frames = [API_VERSIONS, METADATA]
    assert asyncio.run(answers([silent, echoing], *frames)) == frames
    # Where there is only one broker, its answer is waited for.
    with pytest.raises(WireError, match="no broker answers"):
        asyncio.run(answers([silent], API_VERSIONS))


def test_another_request_is_asked_once() -> None:
    with pytest.raises(WireError, match="no broker answers"):
        asyncio.run(answers([silent, echoing], METADATA))
