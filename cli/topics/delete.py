"""Delete topics."""

import click

from cli.admin_requests import Ask, asks, check_all, perform
from cli.topic_argument import topics_argument
from state.decisions import Answer


@click.command("delete")
@topics_argument
@click.option("--if-exists", is_flag=True, help="A missing topic is not an error.")
@asks
def command(ask: Ask, topics: tuple[str, ...], if_exists: bool) -> None:
    """Delete topics and their records.

    The answer comes when the deletion has begun. Brokers that are away delete their replicas when they come back.

    \b
    Examples:
      isrflow topics delete orders --dry-run
      isrflow topics delete orders clicks --if-exists
      isrflow topics delete gone --if-exists
    """
    harmless = frozenset({"UNKNOWN_TOPIC_OR_PARTITION"} if if_exists else ())
    requests = [{"kind": "delete_topic", "topic": topic} for topic in topics]
    if len(topics) > 1:
        check_all(ask, requests, frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "TOPIC_DELETION_DISABLED"}) - harmless)
    perform(ask, requests, _told, harmless)


def _told(answer: Answer) -> str:
    there = f"Topic {answer.topic} is being deleted."
    return there if answer.error == "NONE" else f"There is no topic {answer.topic}."
