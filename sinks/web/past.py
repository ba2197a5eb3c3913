"""What the page asks of the past, answered by whoever reads the log: explanations, and the state as it was."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from state.cluster import Cluster
from state.partition import Topic


class PastError(Exception):
    """The question cannot be answered. The message says why, and how far back the log reaches."""


class State(msgspec.Struct, frozen=True):
    """The state after the event ``seq``."""

    seq: int
    cluster: Cluster
    topics: Sequence[Topic]


class Past(Protocol):
    """Answers about the past. Each may take seconds, and runs in a thread of its own."""

    def explain(self, topic: str, partition: int) -> Sequence[str]:
        """Tell in sentences how a partition came to be as it is, oldest first. Raises ``PastError``."""
        ...

    def at(self, time_ms: int) -> State:
        """Return the state after the last event up to a time of the engine's clock. Raises ``PastError``."""
        ...
