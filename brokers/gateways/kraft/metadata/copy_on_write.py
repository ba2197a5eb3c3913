"""A table that is copied before its first change, so that readers of the former table keep it unchanged."""

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class CopyOnWrite(Generic[K, V]):
    """A mapping with its present content in ``held``; it is changed only through ``own``."""

    def __init__(self, held: Mapping[K, V]) -> None:
        self.held = held
        self._owned: dict[K, V] | None = None

    def own(self) -> dict[K, V]:
        """Return a copy that may be changed, the same one at each call."""
        if self._owned is None:
            self.held = self._owned = dict(self.held)
        return self._owned
