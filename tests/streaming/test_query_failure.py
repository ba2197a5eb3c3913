"""A failed query is reported with its innermost cause, in one line."""

import traceback

import pytest

from bus.interface import BusError, DamagedError, FencedError, NoBusError, TrimmedError
from isrflow import errors
from streaming.late_workers import LateWorkers
from streaming.query_failure import CAUSE_CHARS_MAX, bus_error_in, cause_in, lack_in, without_stacks

PLAN = """
=== Streaming Query ===
Identifier: isrflow [id = c1b677b9, runId = 405bc381]
Logical Plan:
~WriteToMicroBatchDataSourceV1 ForeachBatchSink
Caused by: java.io.IOException: of the plan
"""
FILE = "Failed to read log file file:/c/offsets/13. [MALFORMED_LOG_FILE] Log file was malformed. SQLSTATE: KD002"
BATCH = """An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):
  File "/x/py4j/clientserver.py", line 644, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
py4j.protocol.Py4JJavaError: An error occurred while calling o1208.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:70)
Caused by: org.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error during loading state.
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotLoadStore(QueryExecutionErrors.scala:2857)
Caused by: java.io.IOException: Stream is corrupted
\tat net.jpountz.lz4.LZ4BlockInputStream.refill(LZ4BlockInputStream.java:313)
\t... 28 more
"""
WORKER = """Job aborted: Task 0 failed: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "/x/isrflow/streaming/sources/embedded.py", line 86, in read
    entries = bus.read(after, through)
isrflow.errors.BusError: bus data/bus.db: database disk image is malformed

\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:581)
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (FILE + PLAN, FILE),
        (BATCH + PLAN, "IOException: Stream is corrupted"),
        (WORKER + PLAN, "BusError: bus data/bus.db: database disk image is malformed"),
        (": com.fasterxml.jackson.core.JsonParseException: Unexpected character\n at [Source: x]\n\tat y", None),
        ("", "it ended without an error"),
        (PLAN, "it ended without an error"),
    ],
)
def test_the_innermost_cause_is_reported_without_stack_and_plan(text: str, cause: str | None) -> None:
    assert cause_in(text) == (cause or "JsonParseException: Unexpected character")


def test_an_error_without_its_stacks_has_the_same_cause() -> None:
    whole = BATCH + WORKER
    short = without_stacks(whole)
    assert "\tat " not in short
    assert "... 28 more" not in short
    assert cause_in(short) == cause_in(whole)
    assert bus_error_in(short) == bus_error_in(whole)


def test_the_message_is_short() -> None:
    assert len(cause_in("x" * 100_000)) == CAUSE_CHARS_MAX + 1


def reported(error: Exception) -> str:
    """Return what Spark says of an error that its Python worker was stopped by."""
    try:
        raise error
    except Exception:
        return f"Task 0 failed: org.apache.spark.api.python.PythonException: {traceback.format_exc()}\n\tat org.x.Y"


@pytest.mark.parametrize("kind", [BusError, NoBusError, DamagedError, FencedError])
def test_a_bus_error_of_a_worker_is_reported_as_one(kind: type[BusError]) -> None:
    assert bus_error_in(reported(kind("bus x: said"))) == "bus x: said"
    assert cause_in(reported(kind("bus x: said"))) == f"{kind.__name__}: bus x: said"


def test_an_error_that_the_bus_did_not_cause_is_not_reported_as_one() -> None:
    assert bus_error_in(WORKER) == "bus data/bus.db: database disk image is malformed"
    assert bus_error_in(BATCH) is None
    assert bus_error_in(reported(ValueError("said"))) is None
    # Missing events do not stop a query that begins after them.
    assert bus_error_in(reported(TrimmedError("bus x: events up to 7 were removed"))) is None


def test_each_kind_of_bus_error_is_sorted_in() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BusError)]
    others = {kind.__name__ for kind in kinds if bus_error_in(reported(kind("bus x: said"))) is None}
    # Reading raises none of the other two.
    assert others == {"TrimmedError", "EngineOnlyError", "NoAnswerError"}


def test_errors_that_no_new_checkpoint_cures_are_recognized() -> None:
    assert (lack_in("java.io.IOException: No space left on device") or "").startswith("the disk is full")
    assert "driver.memory" in (lack_in("java.lang.OutOfMemoryError: Java heap space") or "")
    assert lack_in(BATCH) is None


@pytest.mark.parametrize(
    "said",
    [
        "Python worker failed to connect back.",
        "Timed out while waiting for the Python worker to connect back after 60000ms.",
    ],
)
def test_a_late_worker_is_recognized(said: str) -> None:
    late = LateWorkers()
    assert late.allow_another_start(f": org.apache.spark.SparkException: {said}\n\tat org.apache.spark.api.python")
    assert not late.allow_another_start(BATCH + WORKER)
