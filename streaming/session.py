"""The Spark session of the job."""

import contextlib
import functools
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
import structlog
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from conf import LOG4J2
from conf.class_archive import ClassArchive
from conf.jars import jars, missing
from conf.java import java_home
from conf.python import keep_paths_safe
from conf.settings import Settings
from streaming.forking.service import ForkServer
from streaming.late_workers import LATE_WORKERS_MAX, LateWorkers
from streaming.sources.event_rows import BYTES_PER_ARROW_BATCH

# What Spark raises itself, and what the bridge to its JVM raises, for example when the JVM is gone.
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)
LOCAL_FILES = "spark-files"
_REASON_LINES_MAX = 3
logger = structlog.get_logger("isrflow.job")
_starting_jvm = threading.Event()
_server: ForkServer | None = None


def reason_of(error: BaseException) -> str:
    """Return one to three lines of an error of Spark's, without its stacks."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if not line.startswith(("at ", "..."))]
    return " ".join(said[:_REASON_LINES_MAX]) or type(error).__name__


def choose_java() -> None:
    """Choose the Java for Spark. Raises ``conf.java.JavaError`` if there is none."""
    os.environ["JAVA_HOME"] = str(java_home())


def class_archive() -> ClassArchive:
    """Return the archive of Spark's classes for the chosen Java, written or not (``streaming/class_archive.py``)."""
    directory = Path(sys.prefix) / "share" / "isrflow"
    return ClassArchive(directory, f"spark-{pyspark.__version__}", Path(os.environ["JAVA_HOME"]))


def end_session(session: SparkSession, timeout_s: float) -> None:
    """Stop ``session`` and wait for its JVM to end. Raises ``subprocess.TimeoutExpired``."""
    gateway = SparkContext._gateway
    session.stop()
    assert gateway is not None, "a session that runs has a gateway"
    gateway.shutdown()
    # The JVM ends when its standard input does.
    gateway.proc.stdin.close()
    gateway.proc.wait(timeout_s)
    SparkContext._gateway = SparkContext._jvm = None
    if _server is not None and _server.is_usable:
        _server.stop()


def _local_files() -> dict[str, str]:
    """Return the settings with which Spark makes local files in Java alone, if the jar for that is in the cache.

    Hadoop has no native code here, so it runs ``chmod`` for each file that it makes: some forty processes a batch.
    """
    if missing(LOCAL_FILES):
        # Spark keeps checksums of its own beside its checkpoint files; Hadoop's would double the files of each batch.
        return {"spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs"}
    checkpointing = "org.apache.spark.sql.execution.streaming.checkpointing"
    return {
        "spark.driver.extraClassPath": os.pathsep.join(str(jar) for jar in jars(LOCAL_FILES)),
        "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
        "spark.sql.streaming.checkpointFileManagerClass": f"{checkpointing}.FileSystemBasedCheckpointFileManager",
    }


def build_session(settings: Settings, local_dir: Path, stacks: Path | None = None) -> SparkSession:
    """Start Spark from this process, configured for short micro-batches with durable, checked state.

    ``local_dir`` is for the files that Spark needs only while it runs. Spark logs the stack of a failed query to the
    file ``stacks``, or if it is None to standard error. Call ``choose_java`` first. Raises one of ``SPARK_ERRORS``.
    """
    keep_paths_safe()
    builder = SparkSession.builder.appName("isrflow").master(f"local[{max(2, settings.shuffle_partitions)}]")
    for key, value in _conf(settings, local_dir, stacks).items():
        builder = builder.config(key, value)
    with jvm_leaves_sigterm():
        # It imports while the JVM starts.
        server = _fork_server(local_dir)
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = str(server.python)
        session = builder.getOrCreate()
    server.wait_ready()
    return session


def _fork_server(local_dir: Path) -> ForkServer:
    """Return this process's server: the running JVM knows the path of its launcher."""
    global _server
    if _server is None or not _server.is_usable:
        _server = ForkServer(local_dir)
    return _server


@contextlib.contextmanager
def jvm_leaves_sigterm() -> Iterator[None]:
    """Make a JVM that starts in the block ignore SIGTERM, while this process still handles it.

    A user may signal the job's whole process group, which would end the JVM while the job still needs it. A JVM that
    starts with SIGTERM ignored keeps ignoring it, and ends with this process.
    """
    _prepare_children()
    _starting_jvm.set()
    try:
        yield
    finally:
        _starting_jvm.clear()


@functools.cache
def _prepare_children() -> None:
    """Make each forked child check whether to ignore SIGTERM. Fork hooks cannot be unregistered."""

    def ignore() -> None:
        if _starting_jvm.is_set():
            signal.signal(signal.SIGTERM, signal.SIG_IGN)

    os.register_at_fork(after_in_child=ignore)


def warm_up(session: SparkSession) -> None:
    """Load what otherwise the first query would load: Python workers, and the state store's native library.

    Before the claim, a failure to load them disturbs no other job. After the claim, the first batch is quicker.
    Raises one of ``SPARK_ERRORS``.
    """
    _run_worker(session)
    jvm: Any = session.sparkContext._jvm
    jvm.org.rocksdb.RocksDB.loadLibrary()


def _run_worker(session: SparkSession) -> None:
    """Run one Python worker, and another one if it is too slow to connect to Spark."""
    late = LateWorkers()
    while True:
        try:
            session.range(1).mapInArrow(lambda batches: batches, "id LONG").collect()
            return
        except SPARK_ERRORS as error:
            if not late.allow_another_start(str(error)):
                raise
            logger.warning(
                "a Python worker was too slow to connect to Spark; starting another one",
                attempt=late.count,
                attempts_max=LATE_WORKERS_MAX,
            )


def java_options(settings: Settings, stacks: Path | None) -> str:
    to_file = f'"-Disrflow.stacks.file={stacks}" -Disrflow.stacks=file ' if stacks else ""
    shared = "".join(f'"{option}" ' for option in class_archive().options)
    return f"-Dlog4j2.configurationFile={LOG4J2.as_uri()} {to_file}{shared}{settings.driver_java_options}"


def _conf(settings: Settings, local_dir: Path, stacks: Path | None) -> dict[str, str]:
    state = "spark.sql.streaming.stateStore"
    return {
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.extraJavaOptions": java_options(settings, stacks),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark would keep a thousand of each for its UI, even if the UI is off.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "500",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.local.dir": str(local_dir),
        "spark.sql.warehouse.dir": str(local_dir / "warehouse"),
        "spark.metrics.namespace": "isrflow",
        "spark.python.worker.reuse": "true",
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        # A batch's plan handles few rows, so generating code for it costs more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        **_local_files(),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # Rows travel between Spark and Python in Arrow batches, and both sides hold several copies of one.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_PER_ARROW_BATCH),
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
