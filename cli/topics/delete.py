"""Delete a topic."""

import click

from cli.admin_requests import Ask, asks, perform
from cli.topic_argument import topic_argument


@click.command("delete")
@topic_argument
@click.option("--if-exists", is_flag=True, help="A missing topic is not an error.")
@asks
def command(ask: Ask, topic: str, if_exists: bool) -> None:
    """Delete a topic and its records.

    The answer comes when the deletion has begun. Brokers that are away delete their replicas when they come back.

    \b
    Examples:
      isrflow topics delete orders --dry-run
      isrflow topics delete orders
      isrflow topics delete gone --if-exists
    """
    harmless = frozenset({"UNKNOWN_TOPIC_OR_PARTITION"} if if_exists else ())
    perform(
        ask,
        [{"kind": "delete_topic", "topic": topic}],
        lambda answer: f"Topic {topic} is being deleted." if answer.error == "NONE" else f"There is no topic {topic}.",
        harmless,
    )
