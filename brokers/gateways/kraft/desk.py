"""Put events on the bus in the order they came, and bring the engine's answers back to who asked."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import msgspec
import structlog
from msgspec.structs import replace

from isrflow.brokers.gateways.kraft.settings import Settings
from isrflow.bus.interface import Bus, BusError
from isrflow.state.decisions import Answer
from isrflow.state.events import Event

logger = structlog.get_logger()

RETRY_MS = (50, 2_000)


class NoAnswerError(Exception):
    """The engine did not answer in time; whether it will is not known."""


class Desk:
    """Publish events, one call to the bus at a time, and wait for answers by their request ids.

    ``incarnation`` begins every request id, so that no two processes wait for the same answer.
    """

    def __init__(self, bus: Bus, incarnation: str, settings: Settings) -> None:
        self._bus = bus
        self._incarnation = incarnation
        self._timeout_s = settings.answer_timeout_ms / 1000
        self._unreachable_max_s = settings.bus_unreachable_max_ms / 1000
        self._waiting_max = settings.events_waiting_max
        self._events: list[Event] = []
        self._asked: dict[str, asyncio.Future[Answer]] = {}
        self._count = 0
        self._wake = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="desk")

    def tell(self, event: Event) -> None:
        """Publish ``event`` soon. Raises ``BusError`` when too many wait already."""
        if len(self._events) >= self._waiting_max:
            raise BusError(f"{self._waiting_max} events wait for the bus")
        self._events.append(event)
        self._wake.set()

    async def ask(self, *events: Event, timeout_ms: int | None = None) -> list[Answer]:
        """Publish events together, and return their answers in the same order.

        Raises ``NoAnswerError`` when one does not come in time.
        """
        timeout_s = self._timeout_s if timeout_ms is None else timeout_ms / 1000
        waiting = [self._waiter(event) for event in events]
        try:
            async with asyncio.timeout(timeout_s):
                return [await future for _, future in waiting]
        except TimeoutError as error:
            raise NoAnswerError(f"no answer within {timeout_s:g} s") from error
        finally:
            for request_id, _ in waiting:
                self._asked.pop(request_id, None)

    def _waiter(self, event: Event) -> tuple[str, asyncio.Future[Answer]]:
        self._count += 1
        request_id = f"{self._incarnation}-{self._count}"
        self.tell(replace(event, request_id=request_id))
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked[request_id] = future
        return request_id, future

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
            batch = [msgspec.json.encode(event) for event in self._events]
            self._events.clear()
            if batch:
                await self._publish(batch)

    async def _publish(self, batch: list[bytes]) -> None:
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._unreachable_max_s
        pause_ms = RETRY_MS[0]
        while True:
            try:
                await loop.run_in_executor(self._thread, self._bus.publish, batch)
                return
            except BusError as error:
                if loop.time() >= give_up:
                    raise
                logger.warning("bus out of reach", why=str(error))
            await asyncio.sleep(pause_ms / 1000)
            pause_ms = min(2 * pause_ms, RETRY_MS[1])

    def close(self) -> None:
        """Let the last call to the bus end."""
        self._thread.shutdown(wait=True)
