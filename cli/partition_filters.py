"""The filters of partitions that Kafka's own tool has."""

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import click

from cli.committed import Committed
from state.cluster import Totals, counted
from state.ids import NO_LEADER
from state.partition import Partition, Topic


class Filters(NamedTuple):
    """Which partitions are wanted: all of them, if no filter is set."""

    under_replicated: bool
    unavailable: bool
    under_min_isr: bool
    at_min_isr: bool

    def wants(self, partition: Partition, min_isr: int) -> bool:
        """Return whether a partition passes every filter."""
        counts = Totals(0, *counted(partition, min_isr))
        checks = (
            (self.under_replicated, counts.under_replicated),
            (self.unavailable, partition.leader == NO_LEADER),
            (self.under_min_isr, counts.under_min_isr),
            (self.at_min_isr, counts.at_min_isr),
        )
        return all(found for wanted, found in checks if wanted)

    def matches(self, found: Committed, topics: list[Topic]) -> Iterator[tuple[Topic, Partition]]:
        """Give the partitions of ``topics`` that pass every filter."""
        for topic in topics:
            min_isr = found.min_isr(topic)
            for partition in topic.partitions:
                if self.wants(partition, min_isr):
                    yield topic, partition


def filtered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add Kafka's four filters to a command, and pass it ``filters``."""

    @_filter("under-replicated", "Only partitions with replicas out of sync.")
    @_filter("unavailable", "Only partitions without a leader.")
    @_filter("under-min-isr", "Only partitions that refuse writes with acks=all.")
    @_filter("at-min-isr", "Only partitions that would refuse such writes with one in-sync replica less.")
    @functools.wraps(function)
    def wrapped(under_replicated: bool, unavailable: bool, under_min_isr: bool, at_min_isr: bool, **rest: Any) -> Any:
        return function(filters=Filters(under_replicated, unavailable, under_min_isr, at_min_isr), **rest)

    return wrapped


def _filter(name: str, purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add a filter by Kafka's name for it, and by a shorter one."""
    return click.option(f"--{name}-partitions", f"--{name}", name.replace("-", "_"), is_flag=True, help=purpose)
