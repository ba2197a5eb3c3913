"""The events on their way to the engine: how many there may be, and in which order they go."""

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from enum import IntEnum

import msgspec

from bus.interface import MAX_EVENT_BYTES
from state.decisions import Answer
from state.events import Event

# The most bytes that a queue holds.
HELD_BYTES_MAX = 64 * 1024 * 1024
# The most bytes that go to the bus in one call.
CALL_BYTES_MAX = MAX_EVENT_BYTES
CALL_EVENTS_MAX = 5_000
# After this many withdrawals the lanes are looked through for what was withdrawn.
_WITHDRAWN_MAX = 1_000


class QueueFullError(Exception):
    """Too many events are on their way already. The request had no effect and may be repeated."""


class Lane(IntEnum):
    """The subject of an event: the gateway itself, a broker's life, its partitions, or an admin's request."""

    GATEWAY = 0
    BROKER = 1
    PARTITION = 2
    ADMIN = 3


# An event of a lane is accepted while the queue is less full than this. So admins cannot crowd out brokers, and brokers
# cannot crowd out the gateway's own heartbeats.
SHARES = {Lane.GATEWAY: 1.0, Lane.BROKER: 0.9, Lane.PARTITION: 0.8, Lane.ADMIN: 0.5}
# The gateway's own events always go first. After them, these lanes take turns.
_IN_TURN = (Lane.BROKER, Lane.PARTITION, Lane.ADMIN)


class Waiter:
    """The answers that one request still waits for; ``done`` is set with the last one."""

    def __init__(self, answers: int) -> None:
        self._left = answers
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(self) -> None:
        self._left -= 1
        if self._left == 0 and not self.done.done():
            self.done.set_result(None)


class QueuedEvent(msgspec.Struct, eq=False):
    """One event on its way to the engine, and the answer that came back."""

    raw: bytes
    size: int
    lane: Lane
    # None if the engine does not answer it.
    request_id: str | None = None
    # Set by ``ask_once``: an equal event under this key is not published while this one is unanswered.
    key: Hashable = None
    # The event without its time and request id; set exactly when ``key`` is.
    content: Event | None = None
    answer: Answer | None = None
    # No request waits for the answer any longer, so the event is not published if it still waits here.
    is_withdrawn: bool = False
    waiters: list[Waiter] = []


class EventQueue:
    """The events on their way. An event without a request id is freed once published, any other once answered."""

    def __init__(self, events_max: int, bytes_max: int = HELD_BYTES_MAX) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._held_events = 0
        self._held_bytes = 0
        self._lanes: dict[Lane, deque[QueuedEvent]] = {lane: deque() for lane in Lane}
        self._turn = 0
        self._withdrawn = 0

    @property
    def held(self) -> tuple[int, int]:
        """How many events are held, and how many bytes they have."""
        return self._held_events, self._held_bytes

    def put(self, events: Sequence[QueuedEvent], lane: Lane) -> None:
        """Add events of one lane, all or none. Raises ``QueueFullError``."""
        count, size = self._held_events + len(events), self._held_bytes + sum(event.size for event in events)
        if count > SHARES[lane] * self._events_max or size > SHARES[lane] * self._bytes_max:
            held = f"{self._held_events} events with {self._held_bytes} bytes are on their way"
            raise QueueFullError(f"{held}: {len(events)} more are too many")
        self._held_events, self._held_bytes = count, size
        self._lanes[lane].extend(events)

    def free(self, event: QueuedEvent) -> None:
        """Make the room of an event available again."""
        self._held_events -= 1
        self._held_bytes -= event.size

    def withdraw(self, event: QueuedEvent) -> None:
        """Free an event whose request has given up. If it still waits here, it is not published.

        Its text is dropped at once. While the bus is out of reach, requests come and give up, and no event leaves.
        """
        self.free(event)
        event.is_withdrawn, event.raw = True, b""
        self._withdrawn += 1
        if self._withdrawn > _WITHDRAWN_MAX:
            self._withdrawn = 0
            for lane, waiting in self._lanes.items():
                self._lanes[lane] = deque(one for one in waiting if not one.is_withdrawn)

    def next_call(self) -> list[QueuedEvent]:
        """Take as many events as fit in one call to the bus, in order within each lane; at least one if any waits."""
        self._turn = (self._turn + 1) % len(_IN_TURN)
        call: list[QueuedEvent] = []
        size = 0
        for lane in (Lane.GATEWAY, *_IN_TURN[self._turn :], *_IN_TURN[: self._turn]):
            waiting = self._lanes[lane]
            while waiting and len(call) < CALL_EVENTS_MAX:
                if waiting[0].is_withdrawn:
                    waiting.popleft()
                    continue
                size += waiting[0].size
                if call and size > CALL_BYTES_MAX:
                    return call
                call.append(waiting.popleft())
        return call
