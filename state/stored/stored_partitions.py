"""The partitions of a stored topic, in slices that are loaded on demand."""

from collections.abc import Callable, Iterator, Sequence, Set
from itertools import chain
from typing import overload

from state.partition import Partition
from state.stored.packed import Unpacked
from state.stored.slices import SLICE_PARTITIONS, Slice


class StoredPartitions(Sequence[Partition]):
    """The partitions of a topic, whose first slice is ``first``. ``load`` finds the others by their place."""

    __slots__ = ("_count", "_first", "_load", "_others")

    def __init__(self, first: Slice, load: Callable[[int], Slice | None]) -> None:
        self._count = first.count
        self._first = Unpacked(first.partitions)
        self._load = load
        self._others: dict[int, Unpacked] = {}

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> Partition: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Partition, ...]: ...
    def __getitem__(self, index: int | slice) -> Partition | tuple[Partition, ...]:
        if isinstance(index, slice):
            return tuple(self)[index]
        if index < 0:
            index += self._count
        if not 0 <= index < self._count:
            raise IndexError(index)
        if index < SLICE_PARTITIONS:
            return self._first.at(index)
        nth, place = divmod(index, SLICE_PARTITIONS)
        return self.unpacked(nth).at(place)

    def some(self, numbers: Sequence[int]) -> list[Partition]:
        """Return the partitions with these numbers, each below the length."""
        if self._count <= SLICE_PARTITIONS:
            return self._first.some(numbers)
        return [self[number] for number in numbers]

    def __iter__(self) -> Iterator[Partition]:
        for nth in range(self.slices):
            yield from self.unpacked(nth).all()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    @property
    def slices(self) -> int:
        return -(-self._count // SLICE_PARTITIONS) or 1

    def unpacked(self, nth: int) -> Unpacked:
        """Return a slice's partitions. Raises ``ValueError`` if the slice is missing."""
        if nth == 0:
            return self._first
        found = self._others.get(nth)
        if found is None:
            stored = self._load(nth)
            if stored is None:
                raise ValueError(f"a topic of {self._count} partitions has no slice {nth}")
            found = self._others[nth] = Unpacked(stored.partitions)
        return found

    def on(self, brokers: Set[int]) -> list[Partition]:
        """List, in order, the partitions that have a replica on one of ``brokers`` or move."""
        return [one for nth in range(self.slices) for one in self._some(nth, self.unpacked(nth).on(brokers))]

    def moving(self) -> list[Partition]:
        """List, in order, the partitions that have replicas to add or to remove, or to be removed by their brokers."""
        return [one for nth in range(self.slices) for one in self._some(nth, self.unpacked(nth).packed.moving)]

    def leaderships(self) -> Iterator[tuple[int, int]]:
        """Return each partition's first replica and its leader, in order, without reading a partition."""
        return chain.from_iterable(self.unpacked(nth).leaderships() for nth in range(self.slices))

    def _some(self, nth: int, places: Sequence[int]) -> list[Partition]:
        return self.unpacked(nth).some(places) if places else []
