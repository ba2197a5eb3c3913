"""A topic's partitions while a batch of events is applied to them."""

from collections.abc import Iterable, Iterator, Sequence, Set
from heapq import merge
from typing import NamedTuple, overload

from state.partition import Partition
from state.stored.stored_partitions import StoredPartitions


class Leadership(NamedTuple):
    """The broker that should lead a partition, and the one that does."""

    partition: int
    # The first replica.
    preferred: int
    leader: int


class WorkingPartitions(Sequence[Partition]):
    """The partitions of a topic as stored, with changes laid over them.

    The stored ones are read when a rule asks for them, and unchanged ones are not written again. After its batch an
    instance is part of the state and no longer changes; the next batch lays its own changes over it.
    """

    __slots__ = ("changed", "stored", "total")

    def __init__(self, stored: Sequence[Partition]) -> None:
        # By number.
        self.changed: dict[int, Partition] = {}
        self.stored = stored
        self.total = len(stored)
        if isinstance(stored, WorkingPartitions):
            # An earlier part of the same batch has changed them.
            self.stored, self.changed = stored.stored, dict(stored.changed)

    def __len__(self) -> int:
        return self.total

    @overload
    def __getitem__(self, index: int) -> Partition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Partition, ...]: ...
    def __getitem__(self, index: int | slice) -> Partition | tuple[Partition, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        if index < 0:
            index += self.total
        found = self.changed.get(index)
        return self.stored[index] if found is None else found

    def __iter__(self) -> Iterator[Partition]:
        """Yield all partitions. A rule may change the one that it was given last, and earlier ones."""
        return self._each() if self.changed else iter(self.stored)

    def _each(self) -> Iterator[Partition]:
        changed = self.changed
        for number, partition in enumerate(self.stored):
            yield changed.get(number, partition)
        for number in range(len(self.stored), self.total):
            yield changed[number]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def some(self, numbers: Sequence[int]) -> list[Partition | None]:
        """Return the partitions with these numbers; None for a number that is too high."""
        changed, stored, total = self.changed, self.stored, len(self.stored)
        if len(numbers) == 1:
            # In a storm, an event names one partition of most topics.
            number = numbers[0]
            return [changed.get(number) or (stored[number] if number < total else None)]
        are_stored = changed.keys().isdisjoint(numbers) and max(numbers, default=0) < total
        if are_stored and isinstance(stored, StoredPartitions):
            return [*stored.some(numbers)]
        found = [*map(changed.get, numbers)]
        for place, partition in enumerate(found):
            if partition is None and numbers[place] < total:
                found[place] = stored[numbers[place]]
        return found

    def put(self, partition: Partition) -> None:
        """Lay a changed partition over the stored one, or append a new one."""
        number = partition.partition
        self.changed[number] = partition
        if number >= self.total:
            self.total = number + 1

    def on(self, brokers: Set[int]) -> Iterable[Partition]:
        """Return, in order, the partitions that have a replica on one of ``brokers`` or move, and maybe others.

        Only these are read from their bytes.
        """
        return self._with_changed(self.stored.on(brokers)) if isinstance(self.stored, StoredPartitions) else self

    def moving(self) -> Iterable[Partition]:
        """Return, in order, the partitions that ``state.stored.packed.is_moving`` is true of, and maybe others."""
        return self._with_changed(self.stored.moving()) if isinstance(self.stored, StoredPartitions) else self

    def leaderships(self) -> Iterable[Leadership]:
        """Return, in order, the partitions that are not being reassigned. Few of them are read from their bytes.

        A rule may change the partition that it was given last.
        """
        if not isinstance(self.stored, StoredPartitions):
            return _leaderships_of(self)
        # Only partitions that may be under reassignment, and changed ones, are read.
        read = list(self.moving())
        apart = {partition.partition for partition in read}
        pairs = enumerate(self.stored.leaderships())
        others = (Leadership(number, *pair) for number, pair in pairs if number not in apart)
        return merge(others, _leaderships_of(read)) if read else others

    def _with_changed(self, found: list[Partition]) -> Iterable[Partition]:
        if not self.changed:
            return found
        merged = {partition.partition: partition for partition in found} | self.changed
        return [merged[number] for number in sorted(merged)]


def _leaderships_of(partitions: Iterable[Partition]) -> Iterator[Leadership]:
    for one in partitions:
        if not one.is_reassigning:
            yield Leadership(one.partition, one.replicas[0], one.leader)
