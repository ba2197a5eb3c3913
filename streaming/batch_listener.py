"""Pass what Spark reports about each micro-batch on to the metrics."""

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from sinks.metrics import Metrics

WHOLE_BATCH = "triggerExecution"


class BatchListener(StreamingQueryListener):
    """The listener that passes a batch's duration and phases to the metrics. It must not delay the query."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        progress = event.progress
        phases_ms = dict(progress.durationMs)
        whole_ms = phases_ms.pop(WHOLE_BATCH, 0)
        self._metrics.batch_ended(duration_ms=whole_ms, phases_ms=phases_ms, events=progress.numInputRows)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        pass
