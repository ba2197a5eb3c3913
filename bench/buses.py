"""The kinds of bus that an engine is measured on."""

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from brokers.launch.kafka.cluster import KafkaCluster, plain_specs
from brokers.launch.kafka.preparing import prepare

# Makes a bus below a folder for the block, and yields its URL.
MakeBus = Callable[[Path], AbstractContextManager[str]]


@contextlib.contextmanager
def in_a_file(folder: Path) -> Iterator[str]:
    yield f"sqlite:{folder / 'bus.db'}"


@contextlib.contextmanager
def on_kafka(folder: Path) -> Iterator[str]:
    """Start one Kafka node for the block."""
    prepare()
    cluster = KafkaCluster.create(folder / "kafka", plain_specs(1))
    try:
        cluster.up()
        yield f"kafka://{cluster.bootstrap}/bench"
    finally:
        cluster.kill()
