"""Add partitions to a topic."""

import click

from cli.admin_requests import Ask, Request, asks, perform
from cli.topic_argument import topic_argument
from cli.topics.create import assignment_of


@click.command("add-partitions")
@topic_argument
@click.option("--partitions", "total", type=int, required=True, metavar="N", help="How many it will have in all.")
@click.option("--replica-assignment", metavar="LIST", help="The replicas of each new partition, for example 1:2,2:3.")
@asks
def command(ask: Ask, topic: str, total: int, replica_assignment: str | None) -> None:
    """Add partitions to a topic. Records stay where they are, but new records may go to another partition than old ones
    with the same key.

    \b
    Examples:
      isrflow topics add-partitions orders --partitions 6
      isrflow topics add-partitions orders --partitions 3 --replica-assignment 3:1 --dry-run
    """
    request: Request = {"kind": "create_partitions", "topic": topic, "total": total}
    if replica_assignment is not None:
        request["assignment"] = list(assignment_of(replica_assignment).values())
    perform(ask, [request], lambda answer: f"Topic {topic} has {total} partitions.")
