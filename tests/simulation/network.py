"""The simulated network: connections that delay, hang and break, and links that are cut.

Connections behave like TCP: lost data arrives later, on a cut link only after the link has healed. Data sent before
the sender gave up or died may still arrive. A cut link lets nothing through in one direction.
"""

import asyncio
import contextvars
import random
from collections.abc import Callable
from typing import Any

from brokers.mock.messages import CATALOGUE, Asked
from brokers.wire.catalogue import Values
from brokers.wire.messages import FRAME_LENGTH_BYTES, WireError
from brokers.wire.server import Answer, Peer
from tests.simulation.virtual_loop import PROCESS, Process, VirtualLoop

PORTS_FROM = 10_000
BUS = "bus"
RETRANSMIT_S = 0.2
# The request that is being answered, so that checkers can see what it leads to.
ASKED: contextvars.ContextVar[Any] = contextvars.ContextVar("asked")


class Network:
    """The carrier of requests and answers; ``slow`` is the share of messages that take a detour."""

    def __init__(self, loop: VirtualLoop, rng: random.Random, slow: float, failed: Callable[[str], None]) -> None:
        self.loop = loop
        self.cut: set[tuple[str, str]] = set()
        self.slow = slow
        self._rng = rng
        self._failed = failed
        self._serving: dict[int, tuple[Process, Answer]] = {}

    def serve(self, port: int, handler: Answer) -> None:
        """Have the current process answer on ``port``."""
        self._serving[port] = (PROCESS.get(), handler)

    def is_cut(self, sender: str, receiver: str) -> bool:
        return (sender, receiver) in self.cut

    def delay_s(self) -> float:
        if self._rng.random() < self.slow:
            return self._rng.uniform(0.02, 0.8)
        return self._rng.uniform(0.0005, 0.005)

    def connect(self, port: int) -> "Connection | None":
        """Connect the current process to the server on ``port``, if there is one."""
        found = self._serving.get(port)
        if found is None or not found[0].alive:
            return None
        return Connection(self, PROCESS.get(), found[0], found[1])

    def deliver(self, sender: Process, receiver: Process, arrived: Callable[[], None], given_up: Any) -> None:
        """Call ``arrived`` in the receiver when the message gets through; ``given_up()`` ends the waiting at a cut."""

        def arrive() -> None:
            if not self.is_cut(sender.name, receiver.name):
                arrived()
            elif not given_up():
                self.loop.call_later(RETRANSMIT_S, arrive)

        self.loop.call_later(self.delay_s(), arrive)

    def report(self, what: str) -> None:
        self._failed(what)


class Connection:
    """A connection in place of a follower's (``Connection``): one request, then its answer."""

    def __init__(self, network: Network, client: Process, server: Process, handler: Answer) -> None:
        self._network = network
        self._client = client
        self._server = server
        self._handler = handler
        self._waiting: asyncio.Future[Any] | None = None
        self._closed = False

    async def ask(self, asked: Asked, timeout_ms: int) -> Values:
        """Send a request and return what the answer says; raises OSError or TimeoutError, as a socket would."""
        if self._closed:
            raise ConnectionResetError("the connection is closed")
        waiting = self._waiting = self._network.loop.create_future()
        self._network.deliver(self._client, self._server, lambda: self._arrived(asked, waiting), lambda: self._closed)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await waiting
        except BaseException:
            self.close()
            raise

    def _arrived(self, asked: Asked, waiting: "asyncio.Future[Any]") -> None:
        if not self._server.alive:
            _fail(waiting, ConnectionResetError("the broker closed the connection"))
            return
        self._network.loop.start(self._server, self._serve(asked, waiting))

    async def _serve(self, asked: Asked, waiting: "asyncio.Future[Any]") -> None:
        key, version, values = asked
        ASKED.set(values)
        try:
            frame = CATALOGUE.encode_request(key, version, 0, self._client.name, values)
            answer = await self._handler(frame, Peer())
            assert answer is not None
            said = CATALOGUE.decode_response(key, version, answer[FRAME_LENGTH_BYTES:]).values
        except (WireError, OSError) as error:
            _fail(waiting, ConnectionResetError(str(error)))
            return
        except Exception as error:
            self._network.report(f"{self._server.name} failed at API {key}: {error!r}")
            return

        def told() -> None:
            if not waiting.done():
                waiting.set_result(said)

        self._network.deliver(self._server, self._client, told, waiting.done)

    def close(self) -> None:
        """Close; a client that waits for an answer sees the end of the stream."""
        self._closed = True
        if self._waiting is not None:
            _fail(self._waiting, ConnectionResetError("the connection is closed"))


def _fail(waiting: "asyncio.Future[Any]", error: OSError) -> None:
    if not waiting.done():
        waiting.set_exception(error)
        waiting.exception()  # Retrieved, because the task that would await it may be gone.


def connections_over(network: Network) -> Any:
    """Make the class with which the fetcher opens connections, over ``network``."""

    class Opening:
        @staticmethod
        async def open(host: str, port: int, client_id: str, timeout_ms: int, limit: int) -> Connection:
            client, server = PROCESS.get().name, f"broker-{port - PORTS_FROM}"
            if network.is_cut(client, server) or network.is_cut(server, client):
                await asyncio.sleep(timeout_ms / 1000)
                raise TimeoutError
            await asyncio.sleep(network.delay_s())
            connection = network.connect(port)
            if connection is None:
                raise ConnectionRefusedError(server)
            return connection

    return Opening
