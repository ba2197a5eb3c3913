"""Start and stop real Kafka brokers on this machine, with the engine and gateways that lead them."""

import click

from cli.lazy_group import LazyGroup


@click.group(
    "cluster", cls=LazyGroup, package="cli.cluster", names=("up", "status", "down", "rebuild", "hand-back", "adopt")
)
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
