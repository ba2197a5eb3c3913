"""What the decisions on one event mean for brokers. Whatever is the same for all brokers is worked out once."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from brokers.gateways.zk.cluster_view import ClusterView, Place
from state.decisions import AnyDecision, LeaderAndIsr
from state.reason import Reason


class PartitionNews(NamedTuple):
    """Consecutive decisions about partitions."""

    decisions: Sequence[LeaderAndIsr]
    places: dict[Place, None]
    # By broker: the partitions whose decisions it must act on, and whether its replica is new.
    roles: dict[int, dict[Place, bool]]


class News:
    """The decisions on an event, which ``view`` has taken in already."""

    def __init__(self, decisions: Iterable[AnyDecision], view: ClusterView) -> None:
        self.view = view
        self.parts: list[PartitionNews | AnyDecision] = []
        self._held_by: dict[frozenset[int], list[Place]] = {}
        for about_partitions, some in groupby(decisions, _is_about_a_partition):
            found = list(some)
            self.parts += [_partition_news(found)] if about_partitions else found

    def held_by(self, brokers: frozenset[int]) -> list[Place]:
        """Name the partitions that have a replica on one of ``brokers``, in order, unless their topics are deleted."""
        found = self._held_by.get(brokers)
        if found is None:
            found = self._held_by[brokers] = list(_held_by(brokers, self.view))
        return found


class Everything:
    """All decisions in ``view``, for brokers that must hear all of them."""

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        # The partitions of topics that brokers keep, in order, and by broker the ones that it has a replica of.
        self.places: dict[Place, None] = {}
        self.roles: dict[int, dict[Place, bool]] = {}
        # The partitions of topics that brokers remove.
        self.deleting: dict[Place, LeaderAndIsr] = {}
        for name, topic in sorted(view.topics.items()):
            if topic.is_deleting:
                self.deleting.update({Place(name, number): held for number, held in sorted(topic.partitions.items())})
                continue
            for number, held in sorted(topic.partitions.items()):
                place = Place(name, number)
                self.places[place] = None
                for broker in held.replicas:
                    self.roles.setdefault(broker, {})[place] = held.is_new


def is_new(broker: int, decision: LeaderAndIsr) -> bool:
    """Return whether a broker must make the log even if one of its log directories failed: the log cannot be there."""
    is_added = broker in decision.adding_replicas and broker not in decision.isr
    return decision.is_new or (is_added and decision.reason != Reason.REPLICA_ONLINE)


def _is_about_a_partition(decision: AnyDecision) -> bool:
    return isinstance(decision, LeaderAndIsr) and decision.reason != Reason.TOPIC_DELETED


def _partition_news(decisions: Iterable[AnyDecision]) -> PartitionNews:
    news = PartitionNews([one for one in decisions if isinstance(one, LeaderAndIsr)], {}, {})
    for decision in news.decisions:
        place = Place(decision.topic, decision.partition)
        news.places[place] = None
        for broker in decision.to:
            roles = news.roles.setdefault(broker, {})
            roles[place] = is_new(broker, decision) or roles.get(place, False)
    return news


def _held_by(brokers: frozenset[int], view: ClusterView) -> Iterator[Place]:
    for name, topic in sorted(view.topics.items()):
        if not topic.is_deleting:
            numbers = [number for number, held in topic.partitions.items() if not brokers.isdisjoint(held.replicas)]
            for number in sorted(numbers):
                yield Place(name, number)
