"""Play a story through the operators, without a JVM: each block is a micro-batch of four shards."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import Decided
from tests.support.operators import OperatorCluster

DECISIONS_MAX = 100_000


class ByOperators:
    """A player with the operators' state and the bus that they write to."""

    def __init__(self, path: Path) -> None:
        self._bus = EmbeddedBus(path)
        self._cluster = OperatorCluster(self._bus)

    def play(self, events: Sequence[tuple[int, bytes]]) -> Sequence[Decided]:
        self._cluster.batch(events)
        return self._bus.decisions((events[0][0] - 1, 2**31), DECISIONS_MAX)

    def view(self) -> dict[str, Any]:
        return view_of_image(self._bus.image())

    def close(self) -> None:
        self._bus.close()
