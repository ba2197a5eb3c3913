"""Show and change topics."""

import click

from cli.lazy_group import LazyGroup

NAMES = ("list", "describe", "create", "delete", "alter", "add-partitions")


@click.group("topics", cls=LazyGroup, package="cli.topics", names=NAMES)
def command() -> None:
    """Show and change topics.

    \b
    Examples:
      isrflow topics list
      isrflow topics describe orders
    """
