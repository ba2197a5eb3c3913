"""Events about partitions of many topics."""

from collections import defaultdict
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from state.event import Event
from state.ids import topic_hash


class NamedTopic(Protocol):
    """The part of such an event about one topic."""

    @property
    def topic(self) -> str: ...
    @property
    def partitions(self) -> Sequence[object]: ...


class OfTopics(Event, frozen=True, kw_only=True, dict=True):
    """An event with ``topics``, each with rows about its partitions.

    Every shard reads the whole event, which may name tens of thousands of topics. What all shards need of it is
    computed once, for the first that asks.
    """

    if TYPE_CHECKING:

        @property
        def topics(self) -> Sequence[NamedTopic]: ...

    @cached_property
    def rows(self) -> int:
        """How many rows all topics have together."""
        return sum([len(named.partitions) for named in self.topics])

    @cached_property
    def names_twice(self) -> bool:
        """Whether a topic is named more than once."""
        return len({named.topic for named in self.topics}) < len(self.topics)

    @cached_property
    def _by_shard(self) -> dict[int, defaultdict[int, list[int]]]:
        return {}

    def places_in(self, shard: int, shards: int) -> Sequence[int]:
        """Return the places of the topics that ``shard`` of ``shards`` holds."""
        found = self._by_shard.get(shards)
        if found is None:
            found = self._by_shard[shards] = defaultdict(list)
            for place, named in enumerate(self.topics):
                found[topic_hash(named.topic) % shards].append(place)
        return found.get(shard, ())
