"""Prepare this machine for Kafka nodes: their jars, and an archive of the classes that they load."""

import fcntl
import tempfile
from collections.abc import Callable
from pathlib import Path

from brokers.launch.kafka.cluster import KafkaCluster, plain_specs
from brokers.launch.kafka.node import JVM_FLAGS, class_archive
from conf.cache import cache_dir
from conf.class_archive import ClassArchive
from conf.jars import Jar, fetch
from conf.java import java_home

LOCK = "kafka-classes.lock"
# The node writes the archive when it stops, which takes long on a busy machine.
STOP_TIMEOUT_S = 180.0


def prepare(fetched: Callable[[Jar], None] = lambda jar: None) -> Path:
    """Fetch what a Kafka node needs, write the archive of its classes if there is none, and return the archive.

    Writing runs a node, which takes 15 s. Calls ``fetched`` for each fetched jar. Raises ``JarsError``, ``JavaError``,
    ``ServiceError`` or ``RuntimeError``.
    """
    fetch("kafka-broker", fetched)
    archive = class_archive(java_home())
    with (cache_dir() / LOCK).open("wb") as lock:
        # If two processes prepare at once, one writes and the other one waits.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.path is None:
            _write(archive)
    assert archive.path is not None, "it was just written"
    return archive.path


def _write(archive: ClassArchive) -> None:
    with archive.written() as options, tempfile.TemporaryDirectory(prefix="isrflow-kafka-") as name:
        cluster = KafkaCluster.create(Path(name), plain_specs(1, jvm_flags=(*JVM_FLAGS, *options)))
        try:
            cluster.up()
            cluster.down(STOP_TIMEOUT_S)
        finally:
            cluster.kill()
