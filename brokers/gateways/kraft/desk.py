"""Put events on the bus in the order they came, and bring the engine's answers back to who asked."""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
from msgspec.structs import replace

from isrflow.brokers.gateways.kraft.settings import Settings
from isrflow.brokers.reaching import reached
from isrflow.bus.interface import MAX_EVENT_BYTES, Bus, BusError
from isrflow.state.decisions import Answer
from isrflow.state.events import Event

# What waits for the bus, in bytes, and what goes to it in one call.
WAITING_BYTES_MAX = 64 * 1024 * 1024
CALL_BYTES_MAX = MAX_EVENT_BYTES
CALL_EVENTS_MAX = 5_000

# After how many time-outs of the quorum without the bus somebody else may lead; a busy machine has room below that.
CUT_OFF_TIMEOUTS = 2


class NoAnswerError(Exception):
    """The engine did not answer in time; whether it will is not known."""


class TooLargeError(Exception):
    """A request that makes an event larger than the bus takes."""


class Desk:
    """Publish events in order, one call to the bus at a time, and wait for answers by their request ids.

    ``incarnation`` begins every request id, so that no two processes wait for the same answer.
    """

    def __init__(self, bus: Bus, incarnation: str, settings: Settings) -> None:
        self._bus = bus
        self._incarnation = incarnation
        self._timeout_s = settings.answer_timeout_ms / 1000
        self._unreachable_max_s = settings.bus_unreachable_max_ms / 1000
        self._waiting_max = settings.events_waiting_max
        self._cut_off_s = CUT_OFF_TIMEOUTS * settings.controller_quorum_fetch_timeout_ms / 1000
        self._published_s = time.monotonic()
        self._events: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._asked: dict[str, asyncio.Future[Answer]] = {}
        self._count = 0
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="desk")

    @property
    def is_cut_off(self) -> bool:
        """Say whether the bus has taken nothing, not even heartbeats, for so long that another gateway may lead."""
        return time.monotonic() - self._published_s > self._cut_off_s

    def tell(self, *events: Event) -> None:
        """Publish events soon, all or none.

        Raises ``BusError`` when too many wait already, ``TooLargeError`` when one is larger than the bus takes.
        """
        encoded = [msgspec.json.encode(event) for event in events]
        if (largest := max(map(len, encoded), default=0)) > MAX_EVENT_BYTES:
            raise TooLargeError(f"an event of {largest} bytes, {MAX_EVENT_BYTES} are allowed")
        size = self._waiting_bytes + sum(map(len, encoded))
        if self._events and (len(self._events) + len(encoded) > self._waiting_max or size > WAITING_BYTES_MAX):
            raise BusError(f"{len(self._events)} events, {self._waiting_bytes} bytes, wait for the bus")
        self._events.extend(encoded)
        self._waiting_bytes = size
        self._wake.set()

    async def ask(self, *events: Event, timeout_ms: int | None = None) -> list[Answer]:
        """Publish events, and return their answers in the same order.

        Raises ``NoAnswerError`` when one does not come in time, and what ``tell`` raises.
        """
        timeout_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        loop = asyncio.get_running_loop()
        waiting: dict[str, asyncio.Future[Answer]] = {self._request_id(): loop.create_future() for _ in events}
        self.tell(*(replace(event, request_id=name) for event, name in zip(events, waiting, strict=True)))
        self._asked |= waiting
        try:
            async with asyncio.timeout(timeout_s):
                return [await future for future in waiting.values()]
        except TimeoutError as error:
            raise NoAnswerError(f"no answer within {timeout_s:g} s") from error
        finally:
            for request_id in waiting:
                del self._asked[request_id]

    def _request_id(self) -> str:
        self._count += 1
        return f"{self._incarnation}-{self._count}"

    def answered(self, answers: Sequence[Answer]) -> None:
        """Hand out what the engine decided; answers to others are passed over."""
        for answer in answers:
            future = self._asked.get(str(answer.request_id))
            if future is not None and not future.done():
                future.set_result(answer)

    async def run(self) -> None:
        """Publish until cancelled. Raises ``BusError`` when the bus stays out of reach."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while batch := self._next_call():
                await self._publish(batch)

    def _next_call(self) -> list[bytes]:
        """Take what fits in one call to the bus, in order; one event at least, where there is any."""
        batch: list[bytes] = []
        size = 0
        while self._events and len(batch) < CALL_EVENTS_MAX:
            if batch and size + len(self._events[0]) > CALL_BYTES_MAX:
                break
            batch.append(self._events.popleft())
            size += len(batch[-1])
        self._waiting_bytes -= size
        return batch

    async def _publish(self, batch: list[bytes]) -> None:
        loop = asyncio.get_running_loop()
        await reached(lambda: loop.run_in_executor(self._thread, self._bus.publish, batch), self._unreachable_max_s)
        self._published_s = time.monotonic()

    def close(self) -> None:
        """Let the last call to the bus end."""
        self._thread.shutdown(wait=True)
