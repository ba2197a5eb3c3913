"""Browse the state like a file system."""

import click

from cli.lazy_group import LazyGroup


@click.group("state", cls=LazyGroup, package="cli.state", names=("cat", "tree"))
def command() -> None:
    """Browse the state like a file system, as with kafka-metadata-shell.

    The state is the one last committed on the bus, or one that 'isrflow replay --state' wrote.

    \b
    Examples:
      isrflow state tree /topics
      isrflow state cat /topics/orders/partitions/0/leader
    """
