"""The requests of a storm of ISR changes: each leader asks for all its ISRs at once, as in AlterPartition."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from state.canonical import RESULTS_MAX
from state.partition import Partition


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
    requests = []
    for leader, led in by_leader.items():
        left = iter(led)
        while some := list(islice(left, RESULTS_MAX)):
            asking = {"broker": leader, "broker_epoch": epochs[leader], "request_id": f"{leader}-{len(requests)}"}
            requests.append(event("alter_isrs", **asking, topics=_topics(some, epochs)))
    return requests


def _topics(asked: Iterable[Asked], epochs: Mapping[int, int]) -> list[dict[str, Any]]:
    rows: dict[str, list[Any]] = defaultdict(list)
    for topic, held, isr in asked:
        members = [epochs[member] for member in isr]
        rows[topic].append([held.partition, held.leader_epoch, held.partition_epoch, isr, members])
    return [{"topic": topic, "partitions": some} for topic, some in rows.items()]
