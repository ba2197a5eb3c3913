"""Run a gateway to brokers of Kafka 4."""

import click

from brokers.gateways.kraft.process import run
from brokers.gateways.kraft.settings import SOURCE, Settings
from cli.gateway.options import with_gateway_settings


@click.command("kraft")
@with_gateway_settings(SOURCE)
def command(settings: Settings) -> None:
    """Run a gateway to brokers in KRaft mode until SIGTERM.

    To the brokers it is one of their controllers. It needs node.id, controller.quorum.voters, cluster.id, bus and
    metadata.log.dir. Exit codes: 0 stopped, 1 refused to go on, 2 a setting is wrong, 3 the bus, a file or a port
    cannot be used, 4 another start of this gateway counts.

    \b
    Examples:
      isrflow gateway kraft --conf gateway.toml
      isrflow gateway kraft --conf gateway.toml --set node.id=101 --set metrics.port=9467
    """
    run(settings)
