"""The engine without Spark: the rules on the simulated bus, in batches cut anywhere, decided late or twice over."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import msgspec

from isrflow.bus.embedded import now_ms
from isrflow.bus.image import read_image
from isrflow.bus.interface import Decided, FencedError, Page
from isrflow.controller_logic.step import step
from isrflow.state.canonical import number, part_of
from isrflow.state.cluster import MappedTopics, Outcome, State
from isrflow.state.codec import encode_cluster, encode_topics
from isrflow.state.event_text import decode
from isrflow.state.events import Logged, Tick
from isrflow.state.policy import policy_of
from tests.simulation.bus import SimulatedBus
from tests.simulation.virtual_loop import VirtualLoop

TICK_S = 0.1
Committed = Callable[[list[Logged], State, Outcome], None]


class Engine:
    """Decide until fenced by a later claim. A batch is decided, then some time passes, then it is committed."""

    def __init__(
        self, bus: SimulatedBus, loop: VirtualLoop, rng: random.Random, settings: dict[str, str], committed: Committed
    ) -> None:
        self._bus = bus
        self._loop = loop
        self._rng = rng
        self._settings = settings
        self._committed = committed

    async def run(self) -> None:
        """Claim the next controller epoch and decide under it."""
        epoch = self._bus.claim("simulated", self._settings, now_ms()).controller_epoch
        held = read_image(self._bus.image)
        state = State(held.cluster, MappedTopics({topic.topic: topic for topic in held.topics}))
        after, ticked = self._bus.image.seq, -TICK_S
        while epoch == self._bus.controller_epoch:
            await asyncio.sleep(self._rng.uniform(0.005, 0.05))
            if self._loop.now - ticked >= TICK_S:
                ticked = self._loop.now
                self._bus.publish([msgspec.json.encode(Tick(time_ms=now_ms()))])
            batch = self._batch(after, state.cluster.clock_ms)
            if not batch:
                continue
            outcome = step(state, batch, policy_of({}))
            await asyncio.sleep(self._rng.choice((0.001, 0.01, 0.15)))
            try:
                self._commit(epoch, batch[-1].seq, outcome)
            except FencedError:
                return
            self._committed(batch, state, outcome)
            state, after = outcome.state, batch[-1].seq

    def _batch(self, after: int, clock_ms: int) -> list[Logged]:
        events = self._bus.events[after : after + self._rng.choice((1, 4, 20, 1_000))]
        batch = []
        for seq, raw in enumerate(events, after + 1):
            event = decode(raw)
            clock_ms = max(clock_ms, getattr(event, "time_ms", 0))
            batch.append(Logged(seq, clock_ms, event, raw))
        return batch

    def _commit(self, epoch: int, through: int, outcome: Outcome) -> None:
        decided = [Decided(*numbered) for numbered in number([part_of(d) for d in outcome.decisions])]
        pages = [Page(0, -1, encode_cluster(outcome.state.cluster))]
        if outcome.changes:
            topics: list[Any] = [outcome.state.topics.get(name) for name in outcome.state.topics.names()]
            pages.append(Page(0, 0, encode_topics(topics)))
        self._bus.commit(epoch, through, decided, pages, self._loop.now)
