"""The counts of a shard, updated with each change, so that no rule counts all partitions."""

from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import astuple

from controller_logic.working_topic import WorkingTopic
from state.cluster import Totals, counted
from state.partition import Partition, PartitionState

_TOPICS = Totals.__struct_fields__.index("topics")
_OFFLINE = Totals.__struct_fields__.index("offline")


class CountsDifference(NamedTuple):
    """How a change affects the counts: pairs of (place, amount), without zeros."""

    # By place in ``Totals``.
    counts: tuple[tuple[int, int], ...]
    # By place in the assignment.
    backlog: tuple[tuple[int, int], ...]

    @classmethod
    def between(cls, before: Partition, after: Partition, min_isr: int) -> "CountsDifference":
        """Count one partition before and after a change of anything but its replicas."""
        counts = list(counted(after, min_isr))
        if before.state != PartitionState.NonExistentPartition:
            counts = [now - former for now, former in zip(counts, counted(before, min_isr), strict=True)]
        backlog = [after.is_behind(place) - before.is_behind(place) for place in range(len(after.replicas))]
        return cls(
            tuple([(place, amount) for place, amount in enumerate(counts, start=1) if amount]),
            tuple([(place, amount) for place, amount in enumerate(backlog) if amount]),
        )


def _requests(partition: Partition) -> tuple[tuple[int, ...], ...]:
    """Return the values that a partition's backlog depends on."""
    return partition.replicas, partition.requested_epochs, partition.completed_epochs


class RunningTotals:
    """The totals and the backlog of a shard, neither of which counts topics that are being deleted."""

    def __init__(self, totals: Totals, backlog: Mapping[int, int]) -> None:
        self._counts: list[int] = list(astuple(totals))
        self._backlog = dict(backlog)
        # By identity: differences that are yet to be counted, and how often.
        self._added: dict[int, tuple[CountsDifference, int]] = {}

    @property
    def leaderless(self) -> int:
        """The number of partitions without a leader."""
        self._settle()
        return self._counts[_OFFLINE]

    def add_topic(self) -> None:
        """Count a topic that has no partitions yet."""
        self._counts[_TOPICS] += 1

    def add_partition(self, topic: WorkingTopic, partition: Partition) -> None:
        """Count a new partition, about which no broker has a request yet."""
        self._count(topic, partition, 1)

    def take_out(self, topic: WorkingTopic) -> None:
        """Take out a topic whose deletion is about to begin."""
        for partition in topic.partitions:
            self._count(topic, partition, -1)
            self._change_backlog(partition.backlog, [])
        self._counts[_TOPICS] -= 1

    def take_out_partitions(self, topic: WorkingTopic) -> None:
        """Take out a topic's partitions, to count them again under another min.insync.replicas."""
        for partition in topic.partitions:
            self._count(topic, partition, -1)

    def put_back_partitions(self, topic: WorkingTopic) -> None:
        """Count the partitions that ``take_out_partitions`` took out."""
        for partition in topic.partitions:
            self._count(topic, partition, 1)

    def change(self, topic: WorkingTopic, before: Partition, after: Partition) -> None:
        if topic.is_deleting:
            return
        former = counted(before, topic.min_isr)
        for place, amount in enumerate(counted(after, topic.min_isr)):
            if amount != former[place]:
                self._counts[place + 1] += amount - former[place]
        if _requests(before) != _requests(after):
            self._change_backlog(before.backlog, after.backlog)

    def add(self, difference: CountsDifference, replicas: tuple[int, ...]) -> None:
        """Add what changed in a partition with these replicas. Its topic must not be in deletion."""
        _, times = self._added.get(id(difference), (difference, 0))
        self._added[id(difference)] = difference, times + 1
        for place, amount in difference.backlog:
            self._backlog[replicas[place]] = self._backlog.get(replicas[place], 0) + amount

    def _settle(self) -> None:
        """Count the differences that were added. There are far fewer of them than partitions."""
        for difference, times in self._added.values():
            for place, amount in difference.counts:
                self._counts[place] += times * amount
        self._added = {}

    def change_backlog_at(self, before: Partition, after: Partition, place: int) -> None:
        """Count a partition in which only the request epochs of the replica at ``place`` differ."""
        more = after.is_behind(place) - before.is_behind(place)
        if more:
            broker = after.replicas[place]
            self._backlog[broker] = self._backlog.get(broker, 0) + more

    def _count(self, topic: WorkingTopic, partition: Partition, sign: int) -> None:
        if not topic.is_deleting:
            for index, amount in enumerate(counted(partition, topic.min_isr), start=1):
                self._counts[index] += sign * amount

    def _change_backlog(self, before: list[int], after: list[int]) -> None:
        if before == after:
            return
        for broker in before:
            self._backlog[broker] = self._backlog.get(broker, 0) - 1
        for broker in after:
            self._backlog[broker] = self._backlog.get(broker, 0) + 1

    def totals(self) -> Totals:
        self._settle()
        return Totals(*self._counts)

    def backlog(self) -> dict[int, int]:
        return {broker: count for broker, count in sorted(self._backlog.items()) if count}
