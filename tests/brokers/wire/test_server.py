"""The server: order, limits, and requests that it cannot serve."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest

from brokers.wire.catalogue import Catalogue, UnsupportedError, Values, framed
from brokers.wire.errors import ErrorCode
from brokers.wire.server import Limits, Peer, Server
from tests.support.raw import RawClient
from tests.support.waiting import TIMEOUT_S

CATALOGUE = Catalogue("brokers.mock")
LIMITS = Limits(socket_request_max_bytes=10_000, max_connections=3, connections_max_idle_ms=2_000, requests_in_flight=4)


async def answer(frame: bytes, peer: Peer) -> bytes | None:
    """Answer FindCoordinator with the host ``key``; a number as the key waits that long, and ``fail`` fails."""
    try:
        request = CATALOGUE.decode_request(frame)
    except UnsupportedError as error:
        return CATALOGUE.versions_refusal(error)
    values: Values = {}
    if request.name == "FindCoordinator":
        key = request.values["Key"]
        if key == "fail":
            raise ValueError("a bug")
        if key.replace(".", "").isdigit():
            await asyncio.sleep(float(key))
        values = {"NodeId": 1, "Host": key, "Port": 1}
    return framed(CATALOGUE.encode_response(request.api_key, request.version, request.correlation_id, values))


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a server that runs in a thread."""
    loop = asyncio.new_event_loop()
    server = Server(answer, LIMITS)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield asyncio.run_coroutine_threadsafe(server.start("127.0.0.1", 0), loop).result(TIMEOUT_S)
    asyncio.run_coroutine_threadsafe(server.stop(), loop).result(TIMEOUT_S)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(TIMEOUT_S)


def find(key: str) -> Any:
    return FindCoordinatorRequest(version=2, key=key, key_type=0)


def test_answers_leave_in_the_order_of_the_requests(port: int) -> None:
    client = RawClient("127.0.0.1", port)
    keys = ["0.3", "a", "0.1", "b", "c", "0.05", "d"]  # more than may be in flight
    requests = [find(key) for key in keys]
    for request in requests:
        client.send(request)
    assert [client.receive(request).host for request in requests] == keys


def test_an_unknown_version_of_api_versions_is_answered_with_the_known_ones(port: int) -> None:
    client = RawClient("127.0.0.1", port)
    client.send_bytes(bytes.fromhex("0000000f 0012 007f 00000007 0001 78 00 00 00 00".replace(" ", "")))
    answer = ApiVersionsRequest  # the response has version 0 whatever version was requested
    frame = client.frame()
    assert frame[:4] == bytes.fromhex("00000007")
    assert int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
    assert client.ask(answer(version=0)).error_code == 0, "and the connection stays open"


def test_a_request_without_a_layout_closes_the_connection(port: int) -> None:
    client = RawClient("127.0.0.1", port)
    client.send(MetadataRequest(version=13, topics=None))
    with pytest.raises(ConnectionError):
        client.frame()


@pytest.mark.parametrize(
    "data", ["7fffffff", "ffffffff", "00000000", "00002711", "00000003000a00", "0000000a000a0002000000017fff"]
)
def test_nonsense_closes_the_connection(port: int, data: str) -> None:
    client = RawClient("127.0.0.1", port)
    client.send_bytes(bytes.fromhex(data))
    with pytest.raises(ConnectionError):
        client.frame()


def test_a_failing_handler_closes_only_its_connection(port: int) -> None:
    one, other = RawClient("127.0.0.1", port), RawClient("127.0.0.1", port)
    one.send(find("fail"))
    with pytest.raises(ConnectionError):
        one.frame()
    assert other.ask(find("a")).host == "a"


def test_connections_are_limited(port: int) -> None:
    clients = [RawClient("127.0.0.1", port) for _ in range(3)]
    for client in clients:
        assert client.ask(find("a")).host == "a"
    with pytest.raises(OSError):
        RawClient("127.0.0.1", port).ask(find("a"))
    clients.pop().close()


def test_idle_connections_are_closed(port: int) -> None:
    client = socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_S)
    assert client.recv(1) == b""


def test_no_request_outlives_its_connection() -> None:
    """One more is in progress than may be in flight, because it waits for its place in the queue."""
    asked, ended = [], []

    async def answer(frame: bytes, peer: Any) -> bytes | None:
        asked.append(frame)
        try:
            await asyncio.sleep(TIMEOUT_S)
        finally:
            ended.append(frame)
        return None

    async def scene() -> None:
        server = Server(answer, LIMITS)
        _, writer = await asyncio.open_connection("127.0.0.1", await server.start("127.0.0.1", 0))
        writer.write(b"\0\0\0\x01x" * 10)
        async with asyncio.timeout(TIMEOUT_S):
            # The writing side has taken one from the queue.
            while len(asked) < LIMITS.requests_in_flight + 2:
                await asyncio.sleep(0.01)
        await server.stop()
        writer.close()
        await asyncio.sleep(0)
        assert len(ended) == len(asked)

    asyncio.run(scene())


def test_a_fetch_waits_until_the_answers_before_it_are_written() -> None:
    """Otherwise a client that asks often and reads nothing would fill the memory."""
    # More than the system keeps for a sender, while the receiver's buffer has a size of its own.
    long_answer = bytes(32 << 20)
    asked: list[bytes] = []

    async def answer(frame: bytes, peer: Any) -> bytes | None:
        asked.append(frame)
        return long_answer if frame.startswith(b"\0\x01") else b"short"

    async def scene() -> None:
        server = Server(answer, LIMITS)
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        client.connect(("127.0.0.1", await server.start("127.0.0.1", 0)))
        reader, writer = await asyncio.open_connection(sock=client)
        fetch, other = b"\0\x01x", b"\0\x03x"
        for frame in (fetch, other, fetch, other):
            writer.write(len(frame).to_bytes(4, "big") + frame)
        async with asyncio.timeout(TIMEOUT_S):
            while len(asked) < 2:
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert asked == [fetch, other], "others need not wait"
        async with asyncio.timeout(TIMEOUT_S):
            await reader.readexactly(2 * (len(long_answer) + len(b"short")))
        assert asked == [fetch, other, fetch, other]
        await server.stop()
        writer.close()

    asyncio.run(scene())
