"""Run a gateway to brokers in ZooKeeper mode."""

import click

from brokers.gateways.zk.process import run
from brokers.gateways.zk.settings import SOURCE, Settings
from cli.gateway.options import with_gateway_settings


@click.command("zookeeper")
@click.option(
    "--adopt",
    "adopting",
    is_flag=True,
    help="First take over the brokers from their own controller (docs/zookeeper.md).",
)
@with_gateway_settings(SOURCE)
def command(settings: Settings, adopting: bool) -> None:
    """Run a gateway to brokers in ZooKeeper mode until SIGTERM.

    To the brokers it is their controller. It needs node.id, controller.quorum.voters, cluster.id, bus and
    zookeeper.connect. Exit codes: 0 stopped, 1 refused to go on, 2 a setting is wrong, 3 the bus, ZooKeeper or a port
    cannot be used.

    \b
    Examples:
      isrflow gateway zookeeper --conf gateway.toml
      isrflow gateway zookeeper --conf gateway.toml --adopt
    """
    run(settings, adopting=adopting)
