"""The folder that holds a cluster's files."""

from pathlib import Path

import click

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.node import KafkaError
from cli.cluster.led_cluster import LedCluster
from cli.errors import Unreachable

dir_option = click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("data/kafka"),
    show_default=True,
    help="The folder with the cluster's files.",
)


def open_cluster(folder: Path) -> tuple[KafkaCluster, LedCluster | None]:
    """Open the cluster in a folder, and its ``LedCluster`` if the engine leads it. Raises ``Unreachable``."""
    try:
        kafka = KafkaCluster.open(folder)
        return kafka, LedCluster.open(kafka)
    except KafkaError as error:
        raise Unreachable(str(error)) from error
