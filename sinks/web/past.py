"""The page's questions about the past: why a partition is as it is, and what the state was at a time."""

from itertools import islice
from typing import Any, Protocol

from msgspec.structs import replace

from sinks.web.counted_pages import Sum
from sinks.web.partitions import facts_of, rows_of, summarise
from sinks.web.picture import Picture, observed_in
from sinks.web.view import ROWS_MAX, cluster_of, gone
from state.cluster import Cluster
from state.partition import Topic
from state.risk import racks_of

# How many partitions of a topic are shown.
PARTITIONS_MAX = 500


class PastError(Exception):
    """The question cannot be answered. The message says why."""


class PastAnswers(Protocol):
    """Answers about the past, as JSON. Each may take seconds."""

    def explain(self, topic: str, partition: int, seq: int | None = None) -> bytes:
        """Explain a partition as of ``seq``, or as it is now if that is None. Raises ``PastError``.

        The answer has the ``summary`` and the ``steps`` of ``history.explanation.Explanation``.
        """
        ...

    def at(self, time_ms: int) -> bytes:
        """Return the state at a time, in the form that ``shown`` gives it. Raises ``PastError``."""
        ...

    def topic(self, topic: str, seq: int | None = None) -> bytes:
        """Return a topic as of ``seq``, or now if that is None, as ``shown_topic`` gives it. Raises ``PastError``."""
        ...

    def close(self) -> None: ...


def shown_topic(seq: int, cluster: Cluster, topic: Topic) -> dict[str, Any]:
    """Return a topic with its first partitions, the healthy ones too."""
    rows = list(islice(rows_of(topic, cluster.policy), PARTITIONS_MAX))
    picture = Picture(brokers=cluster.brokers)
    return {
        "seq": seq,
        "topic": topic.topic,
        "state": topic.shown_state.name,
        "config": dict(sorted(topic.config.items())),
        "partitions": len(topic.partitions),
        "rows": rows,
        "gone": gone(picture, (replica for row in rows for replica in row.replicas)),
    }


def shown(seq: int, cluster: Cluster, topics: list[Topic]) -> dict[str, Any]:
    """Return a whole state in the form that the page gets for the newest one."""
    parts = {(topic.topic, facts_of(topic), 0): topic.partitions for topic in topics}
    whole = Sum()
    whole.add(summarise(parts, cluster.policy, racks_of(cluster.brokers)))
    partitions = sum(len(topic.partitions) for topic in topics)
    picture = Picture(seq=seq, brokers=cluster.brokers, topics=len(topics), partitions=partitions)
    picture = replace(picture, summary=whole.summary(ROWS_MAX), observed=observed_in(cluster))
    return {"seq": seq, "clock_ms": cluster.clock_ms, "cluster": cluster_of(picture)}
