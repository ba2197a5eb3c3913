"""What differs if tasks run on executors of a cluster, and not in this process.

The problem: an executor has none of the driver's files. It cannot read an embedded bus, a checkpoint on the driver's
disk, a batch's events that wait in a file, or this program's own modules.

    what                  on local[N]                    on a cluster
    bus                   any                            on Kafka
    checkpoint            a path or a URI                a URI that all executors reach
    a batch's events      wait in a file                 travel with their task, so they are bounded
    isrflow's modules     of the same environment        shipped by the driver (``ship_rooms``)
    other packages        of the same environment        of the workers' Python (docs/running.md#a-spark-cluster)
"""

import time
import zipfile
from importlib.util import find_spec
from pathlib import Path

from pyspark.sql import SparkSession

from conf.layers import SettingsError
from conf.place_uri import is_uri
from conf.settings import Settings
from conf.spark_settings import is_local
from streaming.job_errors import JobError
from streaming.sources.interface import Source

# Spark itself gives up on a master that does not answer after 60 s, and says less.
EXECUTORS_TIMEOUT_S = 50.0
_POLL_INTERVAL_S = 0.1
# A batch may exceed this by one event. Spark sends at most 128 MiB (spark.rpc.message.maxSize).
SENT_BYTES_MAX = 64 * 1024 * 1024
# The rooms that a task imports.
ROOMS = ("bus", "conf", "controller_logic", "isrflow", "sinks", "state", "streaming", "web")


def check_fits(master: str, settings: Settings, source: Source) -> None:
    """Raise ``SettingsError`` if executors of ``master`` cannot reach the bus or the checkpoint."""
    if is_local(master):
        return
    if source.is_local:
        raise SettingsError(
            f"spark.master is {master}, but bus {settings.bus_name} is a file that only this machine can read: "
            "expected a bus on Kafka (bus = kafka://host:port), or spark.master = local[N]"
        )
    if not is_uri(settings.checkpoint_dir):
        raise SettingsError(
            f"spark.master is {master}, but checkpoint.dir is {settings.checkpoint_dir!r}: expected a URI that all "
            "executors reach, such as hdfs://host/path, or file:///path of a shared file system"
        )
    if settings.max_bytes_per_batch > SENT_BYTES_MAX:
        raise SettingsError(
            f"spark.master is {master}, but max.bytes.per.batch is {settings.max_bytes_per_batch}: expected at most "
            f"{SENT_BYTES_MAX}, because a batch's events travel in one of Spark's messages"
        )


def await_executors(session: SparkSession) -> None:
    """Wait until a cluster has given the first executor.

    Raises ``JobError`` if none comes in ``EXECUTORS_TIMEOUT_S``, because without it the first query would wait forever.
    """
    context = session.sparkContext
    deadline = time.monotonic() + EXECUTORS_TIMEOUT_S
    # The driver counts too.
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > deadline:
            raise JobError(
                f"{context.master} gave no executor in {EXECUTORS_TIMEOUT_S:.0f} s: is there a master, and have its "
                "workers the cores and the memory that spark.executor.cores and spark.executor.memory ask for?"
            )
        time.sleep(_POLL_INTERVAL_S)


def ship_rooms(session: SparkSession, directory: Path) -> None:
    """Give executors the modules of this process, compiled, so that both sides run the same code.

    Executors need the same minor version of Python, which Spark demands too. Writes into ``directory``.
    """
    archive = directory / "isrflow-rooms.zip"
    with zipfile.PyZipFile(str(archive), "w") as packed:
        for room in ROOMS:
            spec = find_spec(room)
            assert spec is not None and spec.submodule_search_locations, f"{room} is a package"
            packed.writepy(spec.submodule_search_locations[0])
    session.sparkContext.addPyFile(str(archive))
