"""Large requests of all connections share one limit and wait for room; small ones never wait for them."""

import asyncio
from collections.abc import Awaitable, Callable

from brokers.wire.server import LARGE_REQUEST_BYTES, Limits, Peer, Server

LARGE = LARGE_REQUEST_BYTES + 1
LIMITS = Limits(queued_max_request_bytes=LARGE, large_request_timeout_ms=300)
BOUND_S = 30.0


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class Answering:
    """A handler that answers small requests at once, and a large one when the test releases it."""

    def __init__(self) -> None:
        self.held: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def __call__(self, frame: bytes, peer: Peer) -> bytes:
        if len(frame) > LARGE_REQUEST_BYTES:
            let_go = asyncio.Event()
            self.held.put_nowait(let_go)
            await let_go.wait()
        return framed(b"ok")


class Client:
    def __init__(self, port: int) -> None:
        self.port = port

    async def send(self, data: bytes) -> None:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(data)

    async def answer(self) -> bytes:
        """Read one answer; return nothing if the connection was closed."""
        try:
            return (await self.reader.readexactly(6))[4:]
        except (asyncio.IncompleteReadError, OSError):
            return b""


def play(story: Callable[[Answering, int], Awaitable[None]]) -> None:
    async def played() -> None:
        answering = Answering()
        server = Server(answering, LIMITS)
        port = await server.start("127.0.0.1", 0)
        try:
            async with asyncio.timeout(BOUND_S):
                await story(answering, port)
        finally:
            await server.stop()

    asyncio.run(played())


def test_a_second_large_request_waits_for_the_first_and_a_small_one_does_not() -> None:
    async def story(answering: Answering, port: int) -> None:
        first, second, small = Client(port), Client(port), Client(port)
        await first.send(framed(b"x" * LARGE))
        let_first_go = await answering.held.get()
        await second.send(framed(b"x" * LARGE))
        await small.send(framed(b"x"))
        assert await small.answer() == b"ok"
        assert answering.held.empty()
        let_first_go.set()
        assert await first.answer() == b"ok"
        (await answering.held.get()).set()
        assert await second.answer() == b"ok"

    play(story)


def test_a_client_that_announces_much_and_sends_nothing_does_not_keep_the_room() -> None:
    async def story(answering: Answering, port: int) -> None:
        idle, other = Client(port), Client(port)
        await idle.send(LARGE.to_bytes(4, "big"))
        await other.send(framed(b"x" * LARGE))
        (await answering.held.get()).set()
        assert await other.answer() == b"ok"
        assert await idle.answer() == b""

    play(story)


def test_a_client_that_disconnects_while_being_answered_frees_its_room() -> None:
    async def story(answering: Answering, port: int) -> None:
        gone, other = Client(port), Client(port)
        await gone.send(framed(b"x" * LARGE))
        await answering.held.get()
        gone.writer.close()
        await other.send(framed(b"x" * LARGE))
        (await answering.held.get()).set()
        assert await other.answer() == b"ok"

    play(story)
