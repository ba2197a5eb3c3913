"""Requests of all connections share limits and wait for room; small ones never wait for large ones."""

import asyncio
from collections.abc import Awaitable, Callable

from brokers.wire.messages import WireError
from brokers.wire.rooms import LARGE_REQUEST_BYTES, SMALL_DECODED_BYTES_MAX, START_BYTES, TINY_REQUEST_BYTES, Rooms
from brokers.wire.server import Limits, Peer, Server

LARGE = LARGE_REQUEST_BYTES + 1
BAD = b"bad"
# Needs room, and waits for the answers before it.
FETCH = b"\x00\x01" + bytes(TINY_REQUEST_BYTES)
LIMITS = Limits(queued_max_request_bytes=LARGE, large_request_timeout_ms=300)
BOUND_S = 30.0


def framed(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class Answering:
    """A handler that answers small requests at once, larger ones when the test releases them, and ``BAD`` not."""

    def __init__(self, at_once_max: int = LARGE_REQUEST_BYTES) -> None:
        self.at_once_max = at_once_max
        self.held: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def __call__(self, frame: bytes, peer: Peer) -> bytes:
        if frame == BAD:
            raise WireError("bad")
        if len(frame) > self.at_once_max:
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


def whole_room(size: int) -> int:
    """Make the objects of any frame take all the room for small ones."""
    return SMALL_DECODED_BYTES_MAX


def nothing(size: int) -> int:
    return 0


def play(
    story: Callable[[Answering, int], Awaitable[None]],
    at_once_max: int = LARGE_REQUEST_BYTES,
    decoded_bytes_max: Callable[[int], int] = nothing,
    is_quick: Callable[[bytes], bool] = lambda start: False,
) -> None:
    async def played() -> None:
        answering = Answering(at_once_max)
        server = Server(answering, LIMITS, decoded_bytes_max=decoded_bytes_max, is_quick=is_quick)
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


def test_large_requests_with_quick_answers_have_rooms_of_their_own() -> None:
    async def story(answering: Answering, port: int) -> None:
        waiting, quick = Client(port), Client(port)
        await waiting.send(framed(b"w" * LARGE))
        let_go = await answering.held.get()
        await quick.send(framed(b"q" * LARGE))
        (await answering.held.get()).set()
        assert await quick.answer() == b"ok"
        let_go.set()
        assert await waiting.answer() == b"ok"

    play(story, is_quick=lambda start: start.startswith(b"q"))


def test_a_client_that_announces_much_and_sends_nothing_does_not_keep_the_room() -> None:
    async def story(answering: Answering, port: int) -> None:
        idle, other = Client(port), Client(port)
        await idle.send(LARGE.to_bytes(4, "big") + b"x" * START_BYTES)
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


def test_small_requests_wait_for_each_other_by_what_they_become_and_tiny_ones_do_not() -> None:
    async def story(answering: Answering, port: int) -> None:
        first, second, tiny = Client(port), Client(port), Client(port)
        await first.send(framed(b"x" * (TINY_REQUEST_BYTES + 1)))
        let_first_go = await answering.held.get()
        await second.send(framed(b"x" * (TINY_REQUEST_BYTES + 1)))
        await tiny.send(framed(b"x" * TINY_REQUEST_BYTES))
        assert await tiny.answer() == b"ok"
        assert answering.held.empty()
        let_first_go.set()
        assert await first.answer() == b"ok"
        (await answering.held.get()).set()
        assert await second.answer() == b"ok"

    play(story, TINY_REQUEST_BYTES, whole_room)


def test_a_client_that_sends_slowly_keeps_no_room_from_others() -> None:
    async def story(answering: Answering, port: int) -> None:
        slow, other = Client(port), Client(port)
        await slow.send(framed(b"x" * (TINY_REQUEST_BYTES + 1))[:-1])
        await other.send(framed(b"x" * (TINY_REQUEST_BYTES + 1)))
        (await answering.held.get()).set()
        assert await other.answer() == b"ok"
        slow.writer.write(b"x")
        (await answering.held.get()).set()
        assert await slow.answer() == b"ok"

    play(story, TINY_REQUEST_BYTES, whole_room)


def test_a_fetch_that_waits_for_its_turn_keeps_no_room_from_others() -> None:
    async def story(answering: Answering, port: int) -> None:
        waiting, other = Client(port), Client(port)
        await waiting.send(framed(b"x") + framed(FETCH))
        let_first_go = await answering.held.get()
        await other.send(framed(b"x" * (TINY_REQUEST_BYTES + 1)))
        (await answering.held.get()).set()
        assert await other.answer() == b"ok"
        let_first_go.set()
        assert await waiting.answer() == b"ok"
        (await answering.held.get()).set()
        assert await waiting.answer() == b"ok"

    play(story, 0, whole_room)


def test_a_connection_that_ends_while_its_fetch_waits_gives_the_room_back() -> None:
    async def story(answering: Answering, port: int) -> None:
        ended, other = Client(port), Client(port)
        # Together, so that the fetch is read before the answer to the first request ends the connection.
        await ended.send(framed(BAD) + framed(FETCH))
        assert await ended.answer() == b""
        await other.send(framed(b"x" * (TINY_REQUEST_BYTES + 1)))
        assert await other.answer() == b"ok"

    play(story, LARGE_REQUEST_BYTES, whole_room)


def test_smaller_requests_do_not_keep_out_a_larger_one() -> None:
    whole, small = 4 * LARGE_REQUEST_BYTES, LARGE_REQUEST_BYTES + 1

    async def scene() -> None:
        rooms = Rooms(whole, lambda size: size)
        await rooms.take_frame(small)
        large = asyncio.ensure_future(rooms.take_frame(whole))
        await asyncio.sleep(0)
        later = asyncio.ensure_future(rooms.take_frame(small))
        await asyncio.sleep(0.01)
        assert (large.done(), later.done()) == (False, False)
        rooms.free_frame(small)
        await large
        await asyncio.sleep(0.01)
        assert not later.done()
        rooms.free_frame(whole)
        await later

    asyncio.run(scene())
