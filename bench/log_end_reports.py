"""The reports of a load: where the logs of replicas end, in few events of each broker or one by one."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from state.canonical import RESULTS_MAX
from state.partition import Partition, Topic

# A topic's name, and one of its partitions.
Place = tuple[str, Partition]


def places_in(topics: Sequence[Topic], count: int) -> Iterator[Place]:
    """Give ``count`` partitions at most, in topics spread evenly over all topics, and so over all shards."""
    total, seen, taken = sum(len(topic.partitions) for topic in topics), 0, 0
    count = min(count, total)
    for topic in topics:
        seen += len(topic.partitions)
        if taken * total < count * seen:
            some = topic.partitions[: count - taken]
            taken += len(some)
            yield from ((topic.topic, held) for held in some)


def one_by_one(places: Iterable[Place], end: int, event: Callable[..., bytes]) -> list[bytes]:
    """Write one event for each replica."""
    return [
        event(
            "log_end_offset",
            topic=topic,
            partition=held.partition,
            broker=broker,
            leader_epoch=held.leader_epoch,
            log_end_offset=end,
        )
        for topic, held in places
        for broker in held.replicas
    ]


def together(places: Iterable[Place], end: int, epochs: Mapping[int, int], event: Callable[..., bytes]) -> list[bytes]:
    """Write one event for each broker, or several if they would have too many rows."""
    by_broker: dict[int, list[Place]] = defaultdict(list)
    for place in places:
        for broker in place[1].replicas:
            by_broker[broker].append(place)
    reports = []
    for broker, held in by_broker.items():
        left = iter(held)
        while some := list(islice(left, RESULTS_MAX)):
            sender = {"broker": broker, "broker_epoch": epochs[broker]}
            reports.append(event("log_end_offsets", **sender, topics=_topics(some, end)))
    return reports


def _topics(places: Iterable[Place], end: int) -> list[dict[str, Any]]:
    rows: dict[str, list[list[int]]] = defaultdict(list)
    for topic, held in places:
        rows[topic].append([held.partition, held.leader_epoch, end])
    return [{"topic": topic, "partitions": some} for topic, some in rows.items()]
