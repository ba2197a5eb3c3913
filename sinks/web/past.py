"""What the page asks of the past, answered by what reads the log: explanations, and the state as it was."""

from typing import Any, Protocol

import msgspec

from sinks.web.live import Picture
from sinks.web.partitions import added, facts_of, summarise
from sinks.web.view import ROWS_MAX, cluster_of
from state.cluster import Cluster
from state.partition import Topic
from state.policy import Policy, laid_over
from state.slices import Slice


class PastError(Exception):
    """The question cannot be answered. The message says why."""


class ToldStep(msgspec.Struct, frozen=True):
    """One event that changed a partition, in sentences."""

    seq: int
    time_ms: int
    sentences: list[str]
    # How often the same came in a row.
    times: int = 1


class Explanation(msgspec.Struct, frozen=True):
    """Why a partition is as it is."""

    summary: list[str]
    # Oldest first.
    steps: list[ToldStep]


class Past(Protocol):
    """Answers about the past, as JSON. Each may take seconds."""

    def explain(self, topic: str, partition: int, seq: int | None = None) -> bytes:
        """Return an ``Explanation`` as of ``seq``, or of now if that is None. Raises ``PastError``."""
        ...

    def at(self, time_ms: int) -> bytes:
        """Return what ``shown`` makes of the state after the last event up to a time. Raises ``PastError``."""
        ...

    def close(self) -> None: ...


def shown(seq: int, cluster: Cluster, topics: list[Topic]) -> dict[str, Any]:
    """Show a whole state as the page shows the newest one."""
    slices = [Slice(topic, len(topic.partitions)) for topic in topics]
    policy = laid_over(laid_over(Policy(), cluster.settings), cluster.config)
    summary = added([summarise(slices, facts_of(slices), policy)], ROWS_MAX)
    partitions = sum(len(topic.partitions) for topic in topics)
    picture = Picture(seq, cluster.clock_ms, cluster.brokers, len(topics), partitions, summary)
    return {"seq": seq, "clock_ms": cluster.clock_ms, "cluster": cluster_of(picture)}
