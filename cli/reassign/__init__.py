"""Move replicas to other brokers."""

import click

from cli.lazy_group import LazyGroup


@click.group(
    "reassign", cls=LazyGroup, package="cli.reassign", names=("generate", "execute", "verify", "cancel", "list")
)
def command() -> None:
    """Move replicas to other brokers, with the files of kafka-reassign-partitions.

    Generate a plan, execute it, and verify it until it is complete. Cancel moves the replicas back.

    \b
    Examples:
      isrflow reassign generate --topics-to-move-json-file topics.json --broker-list 1,2,3
      isrflow reassign execute --reassignment-json-file plan.json --dry-run
    """
