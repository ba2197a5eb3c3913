"""The directories that Spark needs while it runs. Another program may delete them, such as a cleaner of ``/tmp``."""

from collections.abc import Iterable
from pathlib import Path

from pyspark.sql import SparkSession

_SETTINGS = ("spark.local.dir", "spark.python.unix.domain.socket.dir")


def spark_dirs(session: SparkSession) -> list[Path]:
    """Return the directories in which this machine's Spark has its blocks and sockets."""
    conf = session.sparkContext.getConf()
    return [Path(directory) for setting in _SETTINGS if (directory := conf.get(setting))]


def lost_among(directories: Iterable[Path]) -> Path | None:
    """Return the first directory that is gone. Spark's error names none."""
    return next((one for one in directories if not one.is_dir()), None)
