"""Late events: when a topic is recreated, events about the deleted one reach the bus again."""

import random
from collections.abc import Sequence

from state.decisions import TopicDecision
from state.event_text import decode
from state.events import OfReplica
from tests.simulation.bus import SimulatedBus
from tests.simulation.engine import Batch
from tests.simulation.virtual_loop import VirtualLoop

WORDS_MAX = 12
LATE_S = (0.0, 0.6)


class LateEvents:
    """The repeated events about a deleted topic of the same name, published one by one."""

    def __init__(self, bus: SimulatedBus, loop: VirtualLoop, rng: random.Random) -> None:
        self._bus = bus
        self._loop = loop
        self._rng = rng
        self.count = 0

    def decided(self, batch: Batch) -> None:
        """Look for topics that a batch created under the name of a deleted topic."""
        for decision in batch.decisions:
            if isinstance(decision, TopicDecision) and decision.state == "created":
                said = self._said_of_others(decision)
                for raw in self._rng.sample(said, min(len(said), WORDS_MAX)):
                    self.count += 1
                    self._loop.call_later(self._rng.uniform(*LATE_S), self._bus.publish, [raw])

    def _said_of_others(self, topic: TopicDecision) -> Sequence[bytes]:
        name = f'"{topic.topic}"'.encode()
        found = []
        for entry in self._bus.events:
            if name in entry.raw:
                event = decode(entry.raw)
                if isinstance(event, OfReplica) and event.topic == topic.topic and event.topic_id != topic.topic_id:
                    found.append(entry.raw)
        return found
