"""Show and change topics."""

import click

from cli.lazy_group import LazyGroup


@click.group(
    "topics",
    cls=LazyGroup,
    package="cli.topics",
    names=("list", "describe", "create", "delete", "alter", "add-partitions"),
)
def command() -> None:
    """Show and change topics.

    \b
    Examples:
      isrflow topics list
      isrflow topics describe orders
    """
