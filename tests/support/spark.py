"""End the JVM of a test process, so that the tests after it begin with a fresh one."""

from pyspark import SparkContext
from pyspark.sql import SparkSession

END_TIMEOUT_S = 60.0


def end_spark(session: SparkSession) -> None:
    """Stop ``session`` and wait for its JVM to end.

    A JVM keeps threads and memory of every query it ever ran, and the next module would get the same one.
    """
    gateway = SparkContext._gateway
    session.stop()
    assert gateway is not None
    gateway.shutdown()
    # The JVM ends when its standard input does.
    gateway.proc.stdin.close()
    gateway.proc.wait(END_TIMEOUT_S)
    SparkContext._gateway = SparkContext._jvm = None
