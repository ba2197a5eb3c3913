"""Change a topic's settings."""

import click

from cli.admin_requests import Ask, asks, perform
from cli.topic_argument import topic_argument
from cli.topics.settings_check import check_readable, config_option


@click.command("alter")
@topic_argument
@config_option
@click.option("--delete-config", "deleted", multiple=True, metavar="KEY", help="Remove a setting. May be repeated.")
@asks
def command(ask: Ask, topic: str, config: dict[str, str], deleted: tuple[str, ...]) -> None:
    """Change settings of a topic. Settings that are not named stay as they are.

    \b
    Examples:
      isrflow topics alter orders --config min.insync.replicas=2
      isrflow topics alter orders --config unclean.leader.election.enable=true --dry-run
      isrflow topics alter orders --delete-config min.insync.replicas
    """
    both = sorted(set(config) & set(deleted))
    if both or not (config or deleted):
        what = (
            f"{', '.join(both)} cannot be both set and removed"
            if both
            else "name a setting with --config or --delete-config"
        )
        raise click.UsageError(what)
    check_readable(ask.settings, config)
    changes: dict[str, str | None] = {**config, **dict.fromkeys(deleted)}
    request = {"kind": "alter_config", "entity": "topic", "name": topic, "config": changes}
    perform(ask, [request], lambda answer: f"Changed {', '.join(sorted(changes))} of topic {topic}.")
