"""Read and explain what a cluster does that Kafka's own controllers lead."""

import click

from cli.lazy_group import LazyGroup


@click.group("shadow", cls=LazyGroup, package="cli.shadow", names=("read", "run", "serve"))
def command() -> None:
    """Read and explain what a cluster does that Kafka's own controllers lead. Nothing of that cluster changes.

    \b
    Examples:
      isrflow shadow --help
      isrflow shadow read --help
      isrflow shadow run --help
      isrflow shadow serve --help
    """
