"""Events of brokers in a load: requests for ISRs as in AlterPartition, and reports of log ends."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from state.canonical import RESULTS_MAX
from state.partition import Partition, Topic

# A topic's name, and one of its partitions.
Place = tuple[str, Partition]
_T = TypeVar("_T")


class Asked(NamedTuple):
    """The ISR that a partition's leader asks for."""

    topic: str
    held: Partition
    isr: tuple[int, ...]


def isr_requests(asked: Iterable[Asked], epochs: Mapping[int, int], event: Callable[..., bytes]) -> list[bytes]:
    """Write one event for each leader, or several if they would have too many rows."""
    by_leader: dict[int, list[Asked]] = defaultdict(list)
    for one in asked:
        by_leader[one.held.leader].append(one)
    requests: list[bytes] = []
    for leader, some in _portions(by_leader):
        rows: dict[str, list[Any]] = defaultdict(list)
        for topic, held, isr in some:
            members = [epochs[member] for member in isr]
            rows[topic].append([held.partition, held.leader_epoch, held.partition_epoch, isr, members])
        asking = {"broker": leader, "broker_epoch": epochs[leader], "request_id": f"{leader}-{len(requests)}"}
        requests.append(event("alter_isrs", **asking, topics=_topics(rows)))
    return requests


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
    for broker, some in _portions(by_broker):
        rows: dict[str, list[Any]] = defaultdict(list)
        for topic, held in some:
            rows[topic].append([held.partition, held.leader_epoch, end])
        reports.append(event("log_end_offsets", broker=broker, broker_epoch=epochs[broker], topics=_topics(rows)))
    return reports


def _portions(by_broker: Mapping[int, Iterable[_T]]) -> Iterator[tuple[int, list[_T]]]:
    for broker, all_ in by_broker.items():
        left = iter(all_)
        while some := list(islice(left, RESULTS_MAX)):
            yield broker, some


def _topics(rows: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    return [{"topic": topic, "partitions": some} for topic, some in rows.items()]
