"""Spark's settings for the query: what the engine needs, what it prefers, and what the user gave."""

import os
from collections.abc import Mapping
from pathlib import Path

from conf.layers import SettingsError
from conf.settings import Settings
from conf.spark_settings import FIXED, MASTER, OF_THE_LAUNCH, STATE_STORE, is_local
from streaming.fan_out import BYTES_PER_ARROW_BATCH

LOCAL_FILES_CLASS = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
DRIVER_CLASS_PATH = "spark.driver.extraClassPath"
# spark-submit always sets this, to the name of the file that it runs. So it says nothing of what the user wants.
_NAME = "spark.app.name"
_LOOPBACK = "127.0.0.1"
# A socket's path has at most 103 bytes on every system, of which Spark's name for it takes 43.
SOCKET_DIR_BYTES_MAX = 60
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"


def default_master(settings: Settings) -> str:
    """Return the master for an engine whose settings name none."""
    return f"local[{max(2, settings.shuffle_partitions)}]"


def query_conf(
    settings: Settings,
    master: str,
    local_dir: Path,
    told: Mapping[str, str],
    *,
    has_local_files: bool,
    socket_dir: Path | None = None,
) -> dict[str, str]:
    """Return all of Spark's settings.

    The job has the directories ``local_dir`` and ``socket_dir`` to itself. Without a ``socket_dir`` the sockets are in
    ``local_dir``. ``told`` is what Spark was launched with, by spark-submit or in spark-defaults.conf. With
    ``has_local_files`` the driver has the class that makes local files in Java alone. Raises ``SettingsError`` if
    ``told`` has one of ``FIXED``.
    """
    needed = _needed(settings, local_dir)
    for key, value in told.items():
        if key in FIXED and key not in OF_THE_LAUNCH and needed.get(key, value) != value:
            raise SettingsError(f"Spark was started with {key} = {value}, but the engine sets it itself: {FIXED[key]}")
    given = {key: value for key, value in told.items() if key not in FIXED and key != _NAME}
    # The JVM has its class path since its launch.
    launched = {key: given[key] for key in (DRIVER_CLASS_PATH,) if key in given}
    preferred = _preferred(master) | _files(is_local(master) and has_local_files)
    if is_local(master):
        preferred |= _sockets(socket_dir or local_dir)
    return preferred | given | settings.spark | launched | needed | {MASTER: master}


def _files(in_java_alone: bool) -> dict[str, str]:
    """Return how Spark makes local files.

    Hadoop has no native code here, so it runs ``chmod`` for each file that it makes: some forty processes a batch.
    """
    if in_java_alone:
        return {
            "spark.hadoop.fs.file.impl": LOCAL_FILES_CLASS,
            "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTING}.FileSystemBasedCheckpointFileManager",
        }
    # Spark keeps checksums of its own beside its checkpoint files; Hadoop's would double the files of each batch.
    return {"spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs"}


def _sockets(directory: Path) -> dict[str, str]:
    """Return how Spark talks to its Python processes: by sockets in ``directory``, or by TCP if its name is too long.

    Over TCP each hand-over of a batch from one process to the next waits 40 ms for a delayed acknowledgement.
    """
    if len(os.fsencode(directory)) > SOCKET_DIR_BYTES_MAX:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(directory),
    }


def _preferred(master: str) -> dict[str, str]:
    where = {"spark.driver.host": _LOOPBACK, "spark.driver.bindAddress": _LOOPBACK} if is_local(master) else {}
    return {
        _NAME: "isrflow",
        **where,
        # A state.py in an executor's folder must not be taken for ours (conf/python.py).
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark would keep a thousand of each for its UI, even though the UI is off.
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "50",
        "spark.ui.retainedTasks": "500",
        "spark.sql.ui.retainedExecutions": "20",
        "spark.metrics.namespace": "isrflow",
        "spark.python.worker.reuse": "true",
        # A batch's plan handles few rows, so generating code for it costs more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "100000",
        # Rows travel between Spark and Python in slices, and both hold a whole slice several times.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(BYTES_PER_ARROW_BATCH),
        "spark.sql.streaming.stopTimeout": "20s",
        "spark.sql.streaming.pollingDelay": "10ms",
        f"{STATE_STORE}.rocksdb.trackTotalNumberOfRows": "false",
    }


def _needed(settings: Settings, local_dir: Path) -> dict[str, str]:
    return {
        "spark.local.dir": str(local_dir),
        "spark.sql.warehouse.dir": str(local_dir / "warehouse"),
        "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
        "spark.sql.adaptive.enabled": "false",
        "spark.speculation": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.minBatchesToRetain": "10",
        "spark.sql.streaming.noDataMicroBatches.enabled": "false",
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "true",
        f"{STATE_STORE}.providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
        f"{STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{STATE_STORE}.checkpointFormatVersion": "2",
        f"{STATE_STORE}.rowChecksum.enabled": "true",
    }
