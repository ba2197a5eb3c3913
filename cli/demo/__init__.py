"""Show that a cluster loses a broker and keeps its records."""

import click

from cli.errors import WrongUse
from conf.kafka_versions import ZOOKEEPER_KAFKA_VERSION


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the cluster running until Ctrl-C, and print commands to try.")
@click.option(
    "--plain",
    is_flag=True,
    help="Print lines instead of the live view. This is the default if the output is not a terminal.",
)
@click.option("--kafka", is_flag=True, help="Use real Kafka brokers, led through a gateway, and Kafka's own tools.")
@click.option(
    "--zookeeper",
    is_flag=True,
    help=f"With --kafka: brokers of Kafka {ZOOKEEPER_KAFKA_VERSION} in ZooKeeper mode, which obey requests.",
)
def command(keep: bool, plain: bool, kafka: bool, zookeeper: bool) -> None:
    """Kill a leader in a cluster of three, and count every record.

    The demo takes about a minute with mock brokers, and two minutes with real ones. It works in a temporary directory,
    and uses only the loopback network. With --kafka it first fetches Kafka's jars if they are missing.

    \b
    Examples:
      isrflow demo
      isrflow demo --kafka
      isrflow demo --kafka --zookeeper
      isrflow demo --keep
    """
    if zookeeper and not kafka:
        raise WrongUse("--zookeeper needs --kafka: mock brokers use no ZooKeeper")
    # Imports a Kafka client and a terminal view, which the other commands do not need.
    from cli.demo.runner import run_demo

    run_demo(kafka=kafka, zookeeper=zookeeper, keep=keep, plain=plain)
