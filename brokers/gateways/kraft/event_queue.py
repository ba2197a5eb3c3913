"""What is on its way to the bus and not answered yet, within limits, and whose turn it is."""

import asyncio
from collections import deque
from collections.abc import Hashable, Sequence
from enum import IntEnum

import msgspec

from bus.interface import MAX_EVENT_BYTES
from state.decisions import Answer
from state.events import Event

# In bytes, all that an outbox holds.
HELD_BYTES_MAX = 64 * 1024 * 1024
# What goes to the bus in one call.
CALL_BYTES_MAX = MAX_EVENT_BYTES
CALL_EVENTS_MAX = 5_000


class QueueFullError(Exception):
    """Too much is on its way already; what was asked for was not done, and may be asked again."""


class Lane(IntEnum):
    """Name what an event is about: the gateway itself, a broker's life, its partitions, or what an admin asks."""

    GATEWAY = 0
    BROKER = 1
    PARTITION = 2
    ADMIN = 3


# How full an outbox may be for an event to be taken: whatever admins ask for, brokers are heard, and whatever brokers
# ask for, the gateway's own heartbeats get through.
SHARES = {Lane.GATEWAY: 1.0, Lane.BROKER: 0.9, Lane.PARTITION: 0.8, Lane.ADMIN: 0.5}
# After the gateway's own these take turns in being first.
_IN_TURN = (Lane.BROKER, Lane.PARTITION, Lane.ADMIN)


class Waiter:
    """Count the answers that somebody still waits for; ``done`` hears of the last one."""

    def __init__(self, letters: int) -> None:
        self._left = letters
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def answered(self) -> None:
        self._left -= 1
        if self._left == 0 and not self.done.done():
            self.done.set_result(None)


class Letter(msgspec.Struct, eq=False):
    """Hold one event; one with a ``request_id`` is to be answered, one with a ``key`` is asked once as ``asked``."""

    raw: bytes
    size: int
    lane: Lane
    request_id: str | None = None
    key: Hashable = None
    asked: Event | None = None
    answer: Answer | None = None
    is_withdrawn: bool = False
    waiters: list[Waiter] = []


class Outbox:
    """Hold letters until they are ``freed``: those that nobody asked with once published, others once answered."""

    def __init__(self, events_max: int, bytes_max: int = HELD_BYTES_MAX) -> None:
        self._events_max = events_max
        self._bytes_max = bytes_max
        self._held_events = 0
        self._held_bytes = 0
        self._lanes: dict[Lane, deque[Letter]] = {lane: deque() for lane in Lane}
        self._turn = 0

    def put(self, letters: Sequence[Letter], lane: Lane) -> None:
        """Take in letters of one lane, all or none. Raises ``QueueFullError``."""
        events, size = self._held_events + len(letters), self._held_bytes + sum(letter.size for letter in letters)
        if events > SHARES[lane] * self._events_max or size > SHARES[lane] * self._bytes_max:
            held = f"{self._held_events} events, {self._held_bytes} bytes, are on their way"
            raise QueueFullError(f"{held}: {len(letters)} more are too many")
        self._held_events, self._held_bytes = events, size
        self._lanes[lane].extend(letters)

    def free(self, letter: Letter) -> None:
        """Make room again."""
        self._held_events -= 1
        self._held_bytes -= letter.size

    def next_call(self) -> list[Letter]:
        """Take what fits in one call to the bus, in order within each lane; one letter at least, where there is any."""
        self._turn = (self._turn + 1) % len(_IN_TURN)
        call: list[Letter] = []
        size = 0
        for lane in (Lane.GATEWAY, *_IN_TURN[self._turn :], *_IN_TURN[: self._turn]):
            letters = self._lanes[lane]
            while letters and len(call) < CALL_EVENTS_MAX:
                if letters[0].is_withdrawn:
                    letters.popleft()
                    continue
                size += letters[0].size
                if call and size > CALL_BYTES_MAX:
                    return call
                call.append(letters.popleft())
        return call
