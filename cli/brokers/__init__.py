"""Show, fence and unregister brokers."""

import click

from cli.lazy_group import LazyGroup


@click.group("brokers", cls=LazyGroup, package="cli.brokers", names=("list", "describe", "fence", "unregister"))
def command() -> None:
    """Show, fence and unregister brokers.

    \b
    Examples:
      isrflow brokers list
      isrflow brokers fence 3 --dry-run
    """
