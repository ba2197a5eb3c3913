"""A gateway's way to the engine: publish events, and bring the answers back to the requests that wait for them.

The problem: Kafka's clients and brokers wait for an answer on a connection, but the engine has none. It reads events
from the bus and writes decisions to it. The engine may be silent for seconds, and the bus may be out of reach. Then
clients give up, and brokers repeat their requests.

The insight: a gateway reads every decision anyway, because it passes them on to brokers. So answers can come among the
decisions. An event carries its request's id, and the answer with this id is the request's, whichever engine gives it.

    request --ask--> EventQueue --calls--> bus --> engine
       ^                                              |
       | answered: the answer with the request's id   | decisions, in the order of the events
       +--------------- DecisionApplier <-------------+
         passed: all answers to the events up to this seq have come

A client that gives up withdraws its event, so a request that was answered as timed out is not published later. A broker
does not give up, but repeats its request until it is answered. So ``ask_once`` keeps the event, and an equal request
waits for the same answer. An equal request is published only if the engine has passed the event without an answer.

Rejected: to publish each repetition. While no engine decides, each broker would leave one event on the bus for each
attempt.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from brokers.engine.publisher import Publisher
from brokers.gateways.shared.event_queue import EventQueue, Lane, QueuedEvent, QueueFullError, Waiter
from brokers.gateways.shared.gateway_settings import GatewaySettings
from brokers.gateways.shared.slices import in_slices
from bus.clock import steady_ms
from bus.interface import MAX_EVENT_BYTES, Bus
from state.decisions import Answer
from state.event import AdminEvent, Event

# After this many quorum time-outs without the bus, another gateway may lead. One would be too few on a busy machine.
CUT_OFF_TIMEOUTS = 2


class NoAnswerError(Exception):
    """The engine did not answer in time; it may still do what was asked."""


class TooLargeError(Exception):
    """A request makes an event that is larger than the bus accepts."""


class EngineClient:
    """The way to the engine: events go out in order within a lane, and answers come back by request id.

    Every request id starts with ``incarnation``, so no two processes wait for the same answer.
    """

    def __init__(self, bus: Bus, incarnation: str, settings: GatewaySettings) -> None:
        self._incarnation = incarnation
        self._timeout_ms = settings.answer_timeout_ms
        self._cut_off_ms = CUT_OFF_TIMEOUTS * settings.controller_quorum_fetch_timeout_ms
        # The last call that the bus accepted began at this time.
        self._published_ms = steady_ms()
        self._queue = EventQueue(settings.events_waiting_max)
        # By request id, each until it is answered or given up.
        self._unanswered: dict[str, QueuedEvent] = {}
        self._unanswered_once: dict[Hashable, QueuedEvent] = {}
        # Events of ``ask_once``. Once the engine has passed an event's seq, it never answers the event.
        self._due: deque[tuple[int, list[QueuedEvent]]] = deque()
        self._count = 0
        self._wake = asyncio.Event()
        self._publisher = Publisher(bus, settings.bus_unreachable_max_ms, "publisher")

    @property
    def is_cut_off(self) -> bool:
        """Whether the bus has accepted nothing, not even heartbeats, for so long that another gateway may lead."""
        return steady_ms() - self._published_ms > self._cut_off_ms

    @property
    def waiting(self) -> tuple[int, int]:
        """How many events are on their way or unanswered, and how many bytes they have."""
        return self._queue.held

    def tell(self, *events: Event, lane: Lane) -> None:
        """Publish events soon, all or none.

        Raises ``QueueFullError`` when too many wait already, ``TooLargeError`` when one is larger than the bus accepts.
        """
        self._send([_queued(event, lane) for event in events], lane)

    def tell_if_room(self, *events: Event, lane: Lane) -> None:
        """Publish events soon, all or none, or none if too many wait already."""
        if events:
            with contextlib.suppress(QueueFullError):
                self.tell(*events, lane=lane)

    async def ask(self, *events: Event, lane: Lane, timeout_ms: int | None = None) -> list[Answer]:
        """Publish events, and return their answers in the same order.

        An event is not published if its caller gives up first. An admin's event carries its time-out, so an engine that
        reads it later does not act on it.
        Raises ``NoAnswerError`` when an answer does not come in time, and what ``tell`` raises.
        """
        timeout_ms = timeout_ms or self._timeout_ms
        queued = [
            self._request(replace(one, timeout_ms=timeout_ms) if isinstance(one, AdminEvent) else one, lane)
            async for one in in_slices(events)
        ]
        self._send(queued, lane)
        return await self._answers(queued, timeout_ms)

    async def ask_once(self, events: Mapping[Hashable, Event], lane: Lane) -> list[Answer]:
        """Do what ``ask`` does, but do not publish an event that equals the unanswered event of its key.

        So a broker that repeats a request while the engine is silent leaves one event on the bus. A different event
        under the same key is published.
        """
        queued: list[QueuedEvent] = []
        fresh: list[QueuedEvent] = []
        async for key, event in in_slices(events.items()):
            found = self._unanswered_once.get(key)
            if found is None or found.content != replace(event, time_ms=0):
                found = self._request(event, lane, key)
                fresh.append(found)
            queued.append(found)
        self._send(fresh, lane)
        self._unanswered_once |= {one.key: one for one in fresh}
        return await self._answers(queued, self._timeout_ms)

    def _request(self, event: Event, lane: Lane, key: Hashable = None) -> QueuedEvent:
        self._count += 1
        request_id = f"{self._incarnation}-{self._count}"
        queued = _queued(replace(event, request_id=request_id), lane)
        queued.request_id = request_id
        queued.key, queued.content = key, None if key is None else replace(event, time_ms=0)
        return queued

    def _send(self, queued: Sequence[QueuedEvent], lane: Lane) -> None:
        if (largest := max((one.size for one in queued), default=0)) > MAX_EVENT_BYTES:
            raise TooLargeError(f"an event has {largest} bytes; the limit is {MAX_EVENT_BYTES}")
        self._queue.put(queued, lane)
        for one in queued:
            if one.request_id is not None:
                self._unanswered[one.request_id] = one
        self._wake.set()

    async def _answers(self, queued: Sequence[QueuedEvent], timeout_ms: int) -> list[Answer]:
        timeout_s = timeout_ms / 1000
        unanswered = [one for one in queued if one.answer is None]
        waiter = Waiter(len(unanswered))
        for one in unanswered:
            one.waiters.append(waiter)
        try:
            async with asyncio.timeout(timeout_s):
                if unanswered:
                    await waiter.done
        except TimeoutError as error:
            raise NoAnswerError(f"no answer within {timeout_s:g} s") from error
        finally:
            for one in unanswered:
                one.waiters.remove(waiter)
                if one.key is None and not one.waiters:
                    self._forget(one)
        return [one.answer for one in queued if one.answer is not None]

    def _forget(self, queued: QueuedEvent) -> None:
        """Stop waiting for the answer, and withdraw the event if it is not published yet."""
        if self._unanswered.pop(str(queued.request_id), None) is not None:
            self._queue.withdraw(queued)
        if self._unanswered_once.get(queued.key) is queued:
            del self._unanswered_once[queued.key]

    def answered(self, answers: Iterable[Answer]) -> None:
        """Hand out answers of the engine; answers to other processes are ignored."""
        for answer in answers:
            queued = self._unanswered.get(str(answer.request_id))
            if queued is not None:
                self._forget(queued)
                queued.answer = answer
                for waiter in queued.waiters:
                    waiter.answered()

    def passed(self, seq: int) -> None:
        """Note that all answers to the events up to ``seq`` were handed out."""
        while self._due and self._due[0][0] <= seq:
            # The engine passed these events without an answer, so the next request under their keys is published.
            for queued in self._due.popleft()[1]:
                self._forget(queued)

    async def run(self) -> None:
        """Publish until cancelled. Raises ``BusError`` when the bus stays out of reach."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while call := self._queue.next_call():
                await self._publish(call)

    async def _publish(self, call: list[QueuedEvent]) -> None:
        began_ms = 0

        def attempt() -> list[bytes]:
            nonlocal began_ms
            # The call counts from its beginning. If the machine is suspended during the call, the bus may have accepted
            # the events long before the call returns.
            began_ms = steady_ms()
            # Requests may have given up since the last attempt. Their events are not published.
            return [one.raw for one in call if not one.is_withdrawn]

        seq = await self._publisher.publish(attempt)
        if seq is None:
            return
        self._published_ms = began_ms
        once = []
        for queued in call:
            queued.raw = b""
            if queued.request_id is None:
                self._queue.free(queued)
            elif queued.key is not None and queued.answer is None:
                once.append(queued)
        if once:
            self._due.append((seq, once))

    def close(self) -> None:
        """Wait for the call to the bus that is under way, if any."""
        self._publisher.close()


def _queued(event: Event, lane: Lane) -> QueuedEvent:
    raw = msgspec.json.encode(event)
    return QueuedEvent(raw, len(raw), lane)
