"""The brokers, topics and partitions that random events are about."""

from typing import Any

from state.cluster import State
from state.partition import Partition, Topic

BROKERS = (1, 2, 3, 4)
STRANGER = 9
TOPICS = ("orders", "pay.ments", "pay_ments", "logs", "audit")

Fields = dict[str, Any]


def broker_at(a: int) -> int:
    return BROKERS[a % 4] if a < 11 else STRANGER


def epoch_of(state: State, broker: int, b: int) -> int:
    held = state.cluster.brokers.get(broker)
    return (held.broker_epoch if held else 3) + (b == 11)


def some_partition(state: State, a: int) -> tuple[Topic, Partition] | None:
    found = [topic for name in TOPICS if (topic := state.topics.get(name)) is not None]
    pairs = [(topic, partition) for topic in found for partition in topic.partitions]
    return pairs[a % len(pairs)] if pairs else None


def where(state: State, a: int) -> Fields:
    some = some_partition(state, a)
    if some is None or a == 11:
        return {"topic": TOPICS[a % 5], "partition": 5}
    return {"topic": some[0].topic, "partition": some[1].partition}


def of_replica(state: State, a: int) -> Fields:
    """Name the partition of a replica's report, mostly with the topic's id, as brokers do, and sometimes without it."""
    some = some_partition(state, a)
    return where(state, a) | ({"topic_id": some[0].topic_id} if some and a % 4 else {})
