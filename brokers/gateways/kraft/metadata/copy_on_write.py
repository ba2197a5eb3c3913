"""A table that is copied before its first change, so that whoever holds the former one keeps it as it was."""

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class CopyOnWrite(Generic[K, V]):
    """Give a mapping as it now stands in ``held``; change it through ``own`` alone."""

    def __init__(self, held: Mapping[K, V]) -> None:
        self.held = held
        self._owned: dict[K, V] | None = None

    def own(self) -> dict[K, V]:
        """Return a copy that may be changed, the same one each time."""
        if self._owned is None:
            self.held = self._owned = dict(self.held)
        return self._owned
