"""A map that never changes, in slices that successive maps share.

A change copies one slice and two short lists, so it costs nearly the same with ten entries as with a hundred thousand.
Slices are plain dicts, which makes this faster than the persistent maps of packages that have wheels for each Python.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, TypeVar, overload

# The lower bits of a key's hash give its place in a branch, and the bits above them the branch.
_BITS = 5
_MASK = (1 << _BITS) - 1

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
# All maps share what is empty.
_EMPTY: list[dict[Any, Any]] = [{}] * (_MASK + 1)
_Branches = list[list[dict[K, V]]]


class SlicedMap(Mapping[K, V]):
    """A map whose ``set``, ``update`` and ``delete`` return a changed copy. Its keys have no order."""

    __slots__ = ("_branches",)

    def __init__(self, entries: Mapping[K, V] | None = None) -> None:
        self._branches: _Branches[K, V] = [_EMPTY] * (_MASK + 1)
        if entries:
            self._branches = self.update(entries)._branches

    def __getitem__(self, key: K) -> V:
        place = hash(key)
        return self._branches[place >> _BITS & _MASK][place & _MASK][key]

    @overload
    def get(self, key: K, /) -> V | None: ...
    @overload
    def get(self, key: K, /, default: V) -> V: ...
    @overload
    def get(self, key: K, /, default: T) -> V | T: ...
    def get(self, key: K, /, default: Any = None) -> Any:
        place = hash(key)
        return self._branches[place >> _BITS & _MASK][place & _MASK].get(key, default)

    def __contains__(self, key: object) -> bool:
        place = hash(key)
        return key in self._branches[place >> _BITS & _MASK][place & _MASK]

    def __iter__(self) -> Iterator[K]:
        return chain.from_iterable(self._slices())

    def __len__(self) -> int:
        return sum(map(len, self._slices()))

    def __eq__(self, other: object) -> bool:
        return self._branches == other._branches if isinstance(other, SlicedMap) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"SlicedMap({dict(self)})"

    def set(self, key: K, value: V) -> "SlicedMap[K, V]":
        """Return a map with this entry added or replaced."""
        changed, entries = self._with_own_slice(key)
        entries[key] = value
        return changed

    def delete(self, key: K) -> "SlicedMap[K, V]":
        """Return a map without this key. Raises ``KeyError`` if it is not there."""
        changed, entries = self._with_own_slice(key)
        del entries[key]
        return changed

    def update(self, entries: Mapping[K, V]) -> "SlicedMap[K, V]":
        """Return a map with these entries added or replaced. It copies no slice twice."""
        branches, copied = self._branches.copy(), set[int]()
        own: dict[int, dict[K, V]] = {}
        for key, value in entries.items():
            place = hash(key)
            branch, at = place >> _BITS & _MASK, place & _MASK
            slot = branch << _BITS | at
            held = own.get(slot)
            if held is None:
                if branch not in copied:
                    copied.add(branch)
                    branches[branch] = branches[branch].copy()
                held = own[slot] = branches[branch][at] = branches[branch][at].copy()
            held[key] = value
        return _of(branches)

    def _with_own_slice(self, key: K) -> tuple["SlicedMap[K, V]", dict[K, V]]:
        """Return a copy, and its slice for ``key``, which no other map has."""
        place = hash(key)
        branch, at = place >> _BITS & _MASK, place & _MASK
        branches = self._branches.copy()
        slices = branches[branch] = branches[branch].copy()
        own = slices[at] = slices[at].copy()
        return _of(branches), own

    def _slices(self) -> Iterator[dict[K, V]]:
        return chain.from_iterable([branch for branch in self._branches if branch is not _EMPTY])


def _of(branches: _Branches[K, V]) -> SlicedMap[K, V]:
    made: SlicedMap[K, V] = SlicedMap.__new__(SlicedMap)
    made._branches = branches
    return made
