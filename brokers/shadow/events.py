"""The events of an operation: one, or several parts if it has many rows."""

from collections.abc import Iterator, Sequence

import msgspec

from brokers.shadow.operation import Operation
from brokers.shadow.shadow_bus import Observation
from state.observed_events import Cause, Certainty, Observed, ObservedSetting, Results

# Small enough that an event stays well below the largest one of a bus (8 MiB), with long names and many replicas, and
# that the bus keeps an index of its partitions.
PART_ROWS = 4_000
# The value of a setting may have 4 kB.
PART_SETTINGS = 500
# If nothing tells the id of the cluster.
UNKNOWN_CLUSTER = "unknown"
_encode = msgspec.json.Encoder().encode
# In this order, so that topics come before their partitions.
_ROWS = ("brokers", "unregistered_brokers", "deleted_topics", "topics", "partitions", "settings", "features", "other")


def events_of(operation: Operation, cluster_id: str) -> list[Observed]:
    """Return the events of an operation in their order."""
    parts = list(_parts(operation.results))
    return [
        Observed(
            time_ms=operation.time_ms,
            cluster_id=cluster_id,
            offset=operation.offset,
            last_offset=operation.last_offset,
            epoch=operation.epoch,
            cause=operation.cause,
            certainty=operation.certainty,
            evidence=operation.evidence,
            part=part,
            parts=len(parts),
            results=results,
        )
        for part, results in enumerate(parts)
    ]


def beside_the_log(
    cluster_id: str, newest: Observation, cause: Cause, time_ms: int, settings: Sequence[ObservedSetting] = ()
) -> Observed:
    """Return what a running reader tells besides the log, at the operation that was published last."""
    return Observed(
        time_ms=time_ms,
        cluster_id=cluster_id,
        offset=newest.last_offset,
        last_offset=newest.last_offset,
        epoch=max(newest.epoch, 0),
        cause=cause,
        certainty=Certainty.certain,
        results=Results(settings=tuple(settings)),
    )


def encoded(event: Observed) -> bytes:
    """Write an event as a bus takes it."""
    return _encode(event)


def _parts(results: Results) -> Iterator[Results]:
    if all(len(getattr(results, name)) <= _limit(name) for name in _ROWS):
        yield results
        return
    controller = results.controller
    for name in _ROWS:
        rows = getattr(results, name)
        for start in range(0, len(rows), _limit(name)):
            yield Results(controller=controller, **{name: rows[start : start + _limit(name)]})
            controller = None


def _limit(name: str) -> int:
    return PART_SETTINGS if name == "settings" else PART_ROWS
