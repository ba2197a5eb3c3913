"""Pass what Spark reports about each micro-batch on to the metrics.

PySpark's own listener builds a Python object of the whole report, with several hundred calls into the JVM. They cost
more CPU than the idle batch that they report: two thirds of an idle engine's JVM. Here the JVM calls this process and
is asked for the report as text.
"""

from typing import TYPE_CHECKING

import msgspec
from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from sinks.metrics import Metrics

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

WHOLE_BATCH = "triggerExecution"
# In this phase the source looks for the next batch.
_LOOK = "latestOffset"


class _BatchReport(msgspec.Struct, rename="camel"):
    """What is read of Spark's ``StreamingQueryProgress``; the phases of a batch are in milliseconds."""

    num_input_rows: int
    duration_ms: dict[str, float]


class BatchListener:
    """The listener that passes a batch's duration and phases to the metrics. It must not delay the query.

    Its methods have the names of the Java interface that it implements. If the source ``watches`` its bus, the time in
    which it waits for news is not counted as a batch's.
    """

    def __init__(self, metrics: Metrics, *, watches: bool) -> None:
        self._metrics = metrics
        self._watches = watches
        self._decoder = msgspec.json.Decoder(_BatchReport)

    def listen_to(self, session: SparkSession) -> None:
        """Have the JVM call this listener for each query of ``session``."""
        gateway = SparkContext._gateway
        assert gateway is not None, "a session that runs has a gateway"
        ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
        listener = gateway.jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(self)
        session._jsparkSession.streams().addListener(listener)

    def onQueryStarted(self, event: "JavaObject") -> None:
        pass

    def onQueryProgress(self, event: "JavaObject") -> None:
        report = self._decoder.decode(event.progress().json())
        phases_ms = dict(report.duration_ms)
        waited_ms = phases_ms.get(_LOOK, 0) if self._watches else 0
        busy_ms = max(0, phases_ms.pop(WHOLE_BATCH, 0) - waited_ms)
        self._metrics.batch_ended(duration_ms=busy_ms, phases_ms=phases_ms, events=report.num_input_rows)

    def onQueryIdle(self, event: "JavaObject") -> None:
        pass

    def onQueryTerminated(self, event: "JavaObject") -> None:
        pass

    class Java:
        """What the bridge to the JVM reads."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
