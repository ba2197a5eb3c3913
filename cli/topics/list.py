"""List topics."""

import click

from cli.committed import Committed, committed
from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, show_json, show_table
from conf.settings import Settings
from state.partition import Topic

_HEAD = ("Topic", "PartitionCount", "ReplicationFactor", "State", "TopicId")


@click.command("list")
@at_option
@format_option
@with_settings
def command(settings: Settings, at: str | None, form: str) -> None:
    """List the topics as last committed.

    \b
    Examples:
      isrflow topics list
      isrflow topics list --format json
    """
    found = committed(settings, at)
    if form == "json":
        show_json([_row_object(found, topic) for topic in found.topics.values()])
        return
    show_table(_HEAD, (list(_row_object(found, topic).values())[: len(_HEAD)] for topic in found.topics.values()))


def replication_factor(topic: Topic) -> int:
    """Return the number of replicas of a topic's first partition, as Kafka does."""
    return len(topic.partitions[0].replicas) if topic.partitions else 0


def _row_object(found: Committed, topic: Topic) -> dict[str, object]:
    return {
        "topic": topic.topic,
        "partitions": len(topic.partitions),
        "replication_factor": replication_factor(topic),
        "state": topic.shown_state.name,
        "topic_id": topic.topic_id,
        "min_insync_replicas": found.min_isr(topic),
        "config": dict(sorted(topic.config.items())),
    }
