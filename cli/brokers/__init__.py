"""Show, fence and unregister brokers."""

import click

from cli.lazy_group import LazyGroup

NAMES = ("list", "describe", "fence", "unregister")


@click.group("brokers", cls=LazyGroup, package="cli.brokers", names=NAMES)
def command() -> None:
    """Show, fence and unregister brokers.

    \b
    Examples:
      isrflow brokers list
      isrflow brokers fence 3 --dry-run
    """
