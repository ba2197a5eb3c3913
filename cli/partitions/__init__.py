"""Show and explain partitions, and choose who leads them."""

import click

from cli.lazy_group import LazyGroup


@click.group(
    "partitions", cls=LazyGroup, package="cli.partitions", names=("list", "describe", "explain", "transfer-leadership")
)
def command() -> None:
    """Show and explain partitions, and choose who leads them.

    \b
    Examples:
      isrflow partitions list --topic orders
      isrflow partitions explain orders-0
      isrflow partitions transfer-leadership orders-0 --to 2 --dry-run
    """
