"""The folder that holds a cluster's files."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.node import KafkaError
from cli.cluster.led_cluster import LedCluster
from cli.errors import Refused, Unreachable
from cli.options import name_client_config
from conf.layers import SettingsError
from conf.private_dir import private_dir

dir_option = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data/kafka"),
    show_default=True,
    help="The folder with the cluster's files.",
)


def cluster_id_option(purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add ``cluster_id``, Kafka's id of the cluster."""
    return click.option("--cluster-id", metavar="ID", help=purpose)


def open_cluster(folder: Path) -> tuple[KafkaCluster, LedCluster | None]:
    """Open the cluster in a folder, and its ``LedCluster`` if the engine leads it. Raises ``Unreachable``.

    From then on this process connects to the bus as the cluster's settings say.
    """
    try:
        kafka = KafkaCluster.open(folder)
        led = LedCluster.open(kafka)
    except KafkaError as error:
        raise Unreachable(str(error)) from error
    # A command that needs the settings says what is wrong with them. The others, such as `down`, go on without.
    with contextlib.suppress(SettingsError):
        if led is not None:
            name_client_config(led.engine.settings().kafka_client_config)
    return kafka, led


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other commands away from a cluster while this one starts, stops or changes it. Raises ``Refused``.

    A folder that is missing is made, and removed again if it stays empty.
    """
    is_new = not folder.exists()
    private_dir(folder)
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Refused(f"another command starts, stops or changes the cluster in {folder}: wait for it") from error
        yield
    finally:
        os.close(directory)
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()


@contextlib.contextmanager
def held_cluster(folder: Path) -> Iterator[tuple[KafkaCluster, LedCluster | None]]:
    """Open the cluster in a folder, and hold it. Raises ``Unreachable`` or ``Refused``."""
    # First, because a folder without a cluster is not made.
    open_cluster(folder)
    with held(folder):
        yield open_cluster(folder)
