"""The partitions of a topic by number, in slices that successive images share.

A change copies one slice and the list of slices, so it costs nearly the same with ten partitions as with a hundred
thousand. A topic's partitions are numbered from 0, so slices need less memory and time than any kind of map.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

_SLICE_BITS = 8
_SLICE = 1 << _SLICE_BITS

T = TypeVar("T")
Ids = tuple[int, ...]


class PartitionState(msgspec.Struct, frozen=True, gc=False):
    """A partition (``PartitionRegistration``)."""

    replicas: Ids
    # In the order of ``replicas``.
    directories: tuple[str, ...]
    # isr ⊆ replicas
    isr: Ids
    removing_replicas: Ids
    adding_replicas: Ids
    # leader = -1 or leader ∈ isr
    leader: int
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int
    elr: Ids = ()
    last_known_elr: Ids = ()


# None stands for a partition that waits for its first leader. A slice never ends with None, nor the list with an empty
# slice.
Rows = Sequence[PartitionState | None]


class Partitions(Mapping[int, PartitionState]):
    """The partitions of a topic in one image, which never changes."""

    __slots__ = ("_count", "slices")

    def __init__(self, slices: tuple[Rows, ...] = (), count: int = 0) -> None:
        self.slices = slices
        self._count = count

    def __getitem__(self, number: int) -> PartitionState:
        found = self.get(number)
        if found is None:
            raise KeyError(number)
        return found

    def get(self, number: int, default: T | None = None) -> PartitionState | T | None:  # type: ignore[override]
        return _get(self.slices, number) or default

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and _get(self.slices, number) is not None

    def __iter__(self) -> Iterator[int]:
        return (number for number, _ in self.in_order())

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: Any) -> bool:
        if isinstance(other, Partitions):
            return self.slices == other.slices
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Partitions({dict(self.in_order())})"

    def in_order(self) -> Iterator[tuple[int, PartitionState]]:
        """Yield number and state of each partition, by rising number."""
        return _in_order(self.slices)

    def opened(self) -> "OpenPartitions":
        """Return a copy that may be changed."""
        return OpenPartitions(self.slices, self._count)


class OpenPartitions:
    """The partitions of a topic while they are changed. The table that they were opened from stays as it is."""

    def __init__(self, slices: Sequence[Rows], count: int) -> None:
        self._slices = list(slices)
        self._own: dict[int, list[PartitionState | None]] = {}
        self._count = count

    def get(self, number: int) -> PartitionState | None:
        return _get(self._slices, number)

    def in_order(self) -> Iterator[tuple[int, PartitionState]]:
        """Yield number and state of each partition, by rising number."""
        return _in_order(self._slices)

    def set(self, number: int, state: PartitionState) -> None:
        """Replace or add a partition. Raises ``ValueError`` if its number is negative."""
        if number < 0:
            raise ValueError(f"partition {number} cannot be")
        rows, at = self.own(number >> _SLICE_BITS), number & (_SLICE - 1)
        if at >= len(rows):
            rows.extend([None] * (at + 1 - len(rows)))
        self._count += rows[at] is None
        rows[at] = state

    def own(self, index: int) -> list[PartitionState | None]:
        """Return a copy of a slice that may be changed, the same one at each call."""
        rows = self._own.get(index)
        if rows is None:
            while index >= len(self._slices):
                self._slices.append(())
            rows = self._own[index] = list(self._slices[index])
            self._slices[index] = rows
        return rows

    def closed(self) -> Partitions:
        """Return the resulting table. Nothing may be changed here afterwards."""
        for index, rows in self._own.items():
            self._slices[index] = tuple(rows)
        return Partitions(tuple(self._slices), self._count)


def _get(slices: Sequence[Rows], number: int) -> PartitionState | None:
    index, at = number >> _SLICE_BITS, number & (_SLICE - 1)
    if not 0 <= index < len(slices):
        return None
    rows = slices[index]
    return rows[at] if at < len(rows) else None


def _in_order(slices: Sequence[Rows]) -> Iterator[tuple[int, PartitionState]]:
    for index, rows in enumerate(slices):
        for number, state in enumerate(rows, index << _SLICE_BITS):
            if state is not None:
                yield number, state
