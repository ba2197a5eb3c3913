"""The calls that read a bus. They block, so they have a thread of their own."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from brokers.engine.alike_decisions import one_by_one
from brokers.engine.retry import retry
from brokers.gateways.shared.read_watch import ReadWatch
from brokers.gateways.shared.whole_events import whole_events
from brokers.gateways.zk.settings import Settings
from bus.interface import Bus, Image
from state.decisions import AnyDecision

T = TypeVar("T")


class DecisionReader:
    """A reader of decisions. ``watch`` says whether they can be read."""

    def __init__(self, bus: Bus, settings: Settings) -> None:
        self._bus = bus
        self._settings = settings
        self.watch = ReadWatch(settings.controller_quorum_fetch_timeout_ms / 1000)
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="decisions")

    async def image(self) -> Image:
        """Return the state of the last commit. Raises ``BusError`` when the bus stays out of reach."""
        return await retry(lambda: self.ask(lambda bus: bus.image()), self._settings.bus_unreachable_max_ms)

    async def ask(self, call: Callable[[Bus], T]) -> T:
        """Run ``call`` on the bus in the reader's thread. Raises what ``call`` raises."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, self._bus)

    async def has_news(self) -> bool:
        """Return whether there may be unread decisions. Raises ``BusError``."""
        return await self.watch.look(self._thread, self._bus.changed, self._settings.decisions_poll_interval_ms)

    async def read(self, after: int) -> list[list[AnyDecision]]:
        """Return the decisions on the events after ``after``, one list per event; none at the end.

        Raises ``BusError``, and ``UnknownDecisionError`` for a kind of decision that only later versions know.
        """
        self.watch.begin()
        events = await self.ask(lambda bus: whole_events(bus, after))
        # The watch times only the call to the bus, and not what is done with the decisions.
        self.watch.succeeded()
        return [list(one_by_one(event)) for event in events]

    def close(self) -> None:
        """Wait for the call that is under way, if any."""
        self._thread.shutdown(wait=True)
