"""A run that goes on where another one stopped: what is on the bus already is not published again."""

import asyncio

from msgspec.structs import replace

from brokers.shadow.operation import Operation
from bus.clock import steady_ms
from bus.image import HeldState, read_image
from bus.interface import Bus
from state.observed_events import Cause, ObservedTopic

STATE_TIMEOUT_MS = 60_000
_LOOK_S = 0.2


class StateBehindError(Exception):
    """The engine has not decided what is on the bus, and what was missed cannot be told without it."""


class Resumed:
    """The operations after the last one on a bus."""

    def __init__(self, last_offset: int, bus: Bus) -> None:
        self._last_offset = last_offset
        self._bus = bus

    async def new_of(self, operation: Operation) -> Operation | None:
        """Return an operation as it is to be published; None if it was published before.

        A run begins with the state from which it goes on. If that is a later one than the bus has, records were missed.
        Then the operation also says what is no longer there. Raises ``StateBehindError`` or ``BusError``.
        """
        if operation.last_offset <= self._last_offset:
            return None
        if operation.cause is not Cause.seed:
            return operation
        return _with_removals(operation, await self._state())

    async def _state(self) -> HeldState:
        """Return the state after the last operation on the bus."""
        begun_ms = steady_ms()
        while True:
            held = read_image(self._bus.image())
            shadow = held.cluster.shadow
            if shadow is not None and shadow.is_complete and shadow.last_offset >= self._last_offset:
                return held
            if steady_ms() - begun_ms > STATE_TIMEOUT_MS:
                raise StateBehindError(
                    f"the bus has operations up to offset {self._last_offset} that no engine has decided: "
                    "start one with 'isrflow run'"
                )
            await asyncio.sleep(_LOOK_S)


def _with_removals(operation: Operation, held: HeldState) -> Operation:
    results = operation.results
    topic_ids = {row.topic_id for row in results.topics}
    gone = (topic for topic in held.topics if topic.topic_id not in topic_ids)
    brokers = {row.broker for row in results.brokers}
    results = replace(
        results,
        deleted_topics=tuple(ObservedTopic(topic=topic.topic, topic_id=topic.topic_id) for topic in gone),
        unregistered_brokers=tuple(sorted(held.cluster.brokers.keys() - brokers)),
    )
    return operation._replace(cause=Cause.gap, results=results)
