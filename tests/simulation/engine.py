"""The engine without Spark: the rules on the simulated bus, in shards.

Batches are cut anywhere and decided late. When an engine is superseded, a batch is decided twice.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from bus.interface import Decided, FencedError, Page
from controller_logic.balance import event_of
from controller_logic.replay import logged
from controller_logic.routing import batch_for
from controller_logic.step import step
from state.canonical import number
from state.cluster import Cluster, MappedTopics, Outcome, State
from state.decisions import AnyDecision, Imbalance
from state.decisions import decode as decision_of
from state.events import Logged, Tick
from state.features import ELIGIBLE_VERSION
from state.part import part_of
from state.partition import Topic
from state.policy import RECOVERY_STRATEGY, RECOVERY_TIMEOUT, policy_of
from state.shard_outcome import CLUSTER_PAGE
from state.stored.codec import decode_cluster, encode_cluster, encode_topics, joined_topics
from streaming.engine_clock import EngineClock
from tests.simulation.bus import SimulatedBus
from tests.simulation.virtual_loop import VirtualLoop

TICK_S = 0.1


class Batch(NamedTuple):
    """A committed batch: its events, the decisions in their order, and the state of all shards after it."""

    events: list[Logged]
    decisions: list[AnyDecision]
    clusters: list[Cluster]
    topics: dict[str, Topic]


Committed = Callable[[Batch], None]


class Engine:
    """An engine that decides until a later claim fences it. Some time passes between decision and commit of a batch."""

    def __init__(
        self,
        bus: SimulatedBus,
        loop: VirtualLoop,
        rng: random.Random,
        settings: dict[str, str],
        shards: int,
        committed: Committed,
    ) -> None:
        self._bus = bus
        self._loop = loop
        self._rng = rng
        self._settings = dict(settings)
        # A claim with these settings would need level 2, which the first one does not have yet.
        since_level_2 = {ELIGIBLE_VERSION, RECOVERY_STRATEGY, RECOVERY_TIMEOUT} & self._settings.keys()
        self._overrides = {key: self._settings.pop(key) for key in sorted(since_level_2)}
        self._shards = shards
        self._committed = committed

    async def run(self) -> None:
        """Claim the next controller epoch and decide under it."""
        clock = EngineClock()
        claim = self._bus.claim("simulated", self._settings, clock.read_ms())
        epoch = claim.controller_epoch
        states = [self._state(shard) for shard in range(self._shards)]
        after, ticked = self._bus.image.seq, -TICK_S
        while epoch == self._bus.controller_epoch:
            await asyncio.sleep(self._rng.uniform(0.005, 0.05))
            if self._loop.now - ticked >= TICK_S:
                ticked = self._loop.now
                tick = Tick(time_ms=clock.read_ms(), controller_epoch=epoch)
                clock.note_tick(self._bus.publish([msgspec.json.encode(tick)]), tick.time_ms)
            events = self._events(after)
            if not events:
                continue
            outcomes = [
                step(state, batch_for(n, self._shards, events), policy_of({}), overrides=self._overrides)
                for n, state in enumerate(states)
            ]
            await asyncio.sleep(self._rng.choice((0.001, 0.01, 0.15)))
            try:
                decisions = self._commit(epoch, events[-1].seq, outcomes)
            except FencedError:
                return
            states, after = [outcome.state for outcome in outcomes], events[-1].seq
            self._committed(_batch(events, decisions, states))
            clock.decided(after, states[0].cluster.clock_ms)
            self._echo(decisions)

    def _state(self, shard: int) -> State:
        cluster, topics = Cluster(shard=shard, shards=self._shards), MappedTopics()
        for page in self._bus.image.pages:
            if page.shard != shard:
                continue
            if page.page == CLUSTER_PAGE:
                cluster = decode_cluster(page.body)
            else:
                topics |= {topic.topic: topic for topic in joined_topics([page.body])}
        return State(cluster, topics)

    def _events(self, after: int) -> list[Logged]:
        return list(logged(self._bus.events[after : after + self._rng.choice((1, 4, 20, 1_000))]))

    def _commit(self, epoch: int, through: int, outcomes: list[Outcome]) -> list[AnyDecision]:
        """Commit, and return the decisions as a follower of the log reads them."""
        made = [decision for outcome in outcomes for decision in outcome.decisions]
        decided = [Decided(*numbered) for numbered in number([part_of(decision) for decision in made])]
        pages = []
        for shard, outcome in enumerate(outcomes):
            pages.append(Page(shard, CLUSTER_PAGE, encode_cluster(outcome.state.cluster)))
            if outcome.changes:
                held: list[Any] = [outcome.state.topics.get(name) for name in outcome.state.topics.names()]
                pages.append(Page(shard, 0, encode_topics(held)))
        self._bus.commit(epoch, through, decided, pages, self._loop.now)
        return [decision_of(one.body) for one in decided]

    def _echo(self, decisions: list[AnyDecision]) -> None:
        """Publish the cluster-wide count, as the job does."""
        for decision in decisions:
            if isinstance(decision, Imbalance):
                self._bus.publish([msgspec.json.encode(event_of(decision))])


def _batch(events: list[Logged], decisions: list[AnyDecision], states: list[State]) -> Batch:
    held = [state.topics.get(name) for state in states for name in state.topics.names()]
    topics = {topic.topic: topic for topic in held if topic is not None}
    return Batch(events, decisions, [state.cluster for state in states], topics)
