"""Look into the state like into a file system."""

import click

from cli.lazy_group import LazyGroup

NAMES = ("cat", "tree")


@click.group("state", cls=LazyGroup, package="cli.state", names=NAMES)
def command() -> None:
    """Look into the state like into a file system, as kafka-metadata-shell does.

    The state is that on the bus as last committed, or one that 'isrflow replay --state' wrote.

    \b
    Examples:
      isrflow state tree /topics
      isrflow state cat /topics/orders/partitions/0/leader
    """
