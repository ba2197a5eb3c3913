"""The Spark session that the job runs in."""

import os
import signal
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from isrflow.bus.opened import KAFKA
from isrflow.conf import LOG4J2
from isrflow.conf.jars import jars
from isrflow.conf.java import java_home
from isrflow.conf.settings import Settings


def choose_java() -> None:
    """Choose the Java that Spark will run on; raises ``conf.java.JavaError`` when there is none."""
    os.environ["JAVA_HOME"] = str(java_home())


def connector_jars(settings: Settings) -> list[Path]:
    """List what Spark needs beside its own jars; raises ``conf.jars.JarsError`` when any of it is not there."""
    return jars("spark-kafka") if settings.bus.startswith(KAFKA) else []


def build_session(settings: Settings, work_dir: Path) -> SparkSession:
    """Start Spark in this process, set for short micro-batches with durable, checked state.

    ``work_dir`` is where Spark keeps what it needs while it runs. ``choose_java`` comes first.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.builder.appName("isrflow").master(f"local[{max(2, settings.shuffle_partitions)}]")
    for key, value in _conf(settings, work_dir).items():
        builder = builder.config(key, value)
    # Whoever stops the job may signal its whole process group. A JVM that starts with SIGTERM ignored
    # leaves it so, and ends with this process instead of under its hands.
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        return builder.getOrCreate()
    finally:
        signal.signal(signal.SIGTERM, before)


def _conf(settings: Settings, work_dir: Path) -> dict[str, str]:
    state = "spark.sql.streaming.stateStore"
    return {
        "spark.jars": ",".join(str(jar) for jar in connector_jars(settings)),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={LOG4J2.as_uri()} {settings.driver_java_options}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(work_dir / "spark-local"),
        "spark.sql.warehouse.dir": str(work_dir / "spark-warehouse"),
        "spark.metrics.namespace": "isrflow",
        "spark.python.worker.reuse": "true",
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        # A batch's own plan is a few rows long: generating code for it costs more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        # Spark keeps checksums of its own beside its checkpoint files; Hadoop's would double the files of each batch.
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.sql.session.timeZone": "UTC",
        # Spark slices what foreachBatch collects by rows, and a shard's row may be megabytes.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.streaming.pollingDelay": "10ms",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
        f"{state}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        f"{state}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{state}.rocksdb.trackTotalNumberOfRows": "false",
        f"{state}.checkpointFormatVersion": "2",
        f"{state}.rowChecksum.enabled": "true",
    }
