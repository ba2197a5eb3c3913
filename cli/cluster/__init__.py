"""Start and stop real Kafka brokers on this machine, with the engine and gateways that lead them."""

import click

from cli.cluster.down import down
from cli.cluster.rebuild import rebuild
from cli.cluster.status import status
from cli.cluster.up import up


@click.group("cluster")
def command() -> None:
    """Start and stop real Kafka brokers on this machine.

    The engine leads the brokers through gateways. Each part is a separate process. It listens on loopback
    only, and keeps running until it is stopped. docs/kafka.md says what is stored where, and what happens
    when a part dies.

    \b
    Examples:
      isrflow cluster up --brokers 3
      isrflow cluster status
      isrflow cluster down --delete
    """


for _each in (up, status, down, rebuild):
    command.add_command(_each)
