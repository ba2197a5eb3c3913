"""Describe topics in the columns of Kafka's own tool."""

from collections.abc import Iterator

import click

from cli.committed import committed, properties
from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, ids, printable, show_json
from cli.partition_filters import Filters, filtered
from cli.topics.list import replication_factor
from conf.settings import Settings
from state.partition import Partition, Topic, TopicState
from state.view import view_of


@click.command("describe")
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@click.option("--topic", "named", multiple=True, metavar="TOPIC", help="The same as an argument TOPIC.")
@at_option
@format_option
@filtered
@with_settings
def command(
    settings: Settings, at: str | None, names: tuple[str, ...], named: tuple[str, ...], form: str, filters: Filters
) -> None:
    """Describe topics and their partitions: all of them, or those that are named.

    The columns are those of kafka-topics --describe, separated by tabs, and then LeaderEpoch, PartitionEpoch and
    HighWatermark. With a filter only partitions are printed. Several filters must all match.

    \b
    Examples:
      isrflow topics describe orders
      isrflow topics describe --under-replicated-partitions
      isrflow topics describe --unavailable-partitions --format json
    """
    found = committed(settings, at)
    topics = [found.topic(name) for name in (*names, *named)] or list(found.topics.values())
    matches = list(filters.matches(found, topics))
    if form == "json":
        matching = {(topic.topic, partition.partition) for topic, partition in matches}
        view = view_of(found.cluster, topics)
        if any(filters):
            matched = {name for name, _ in matching}
            view["topics"] = [topic for topic in view["topics"] if topic["topic"] in matched]
        partitions = [p for p in view["partitions"] if (p["topic"], p["partition"]) in matching]
        show_json({"topics": view["topics"], "partitions": partitions})
        return
    has_eligible = found.cluster.has_eligible_leaders
    for line in _lines(topics, matches, with_topics=not any(filters), has_eligible=has_eligible):
        click.echo(line)


def _lines(
    topics: list[Topic], matches: list[tuple[Topic, Partition]], *, with_topics: bool, has_eligible: bool
) -> Iterator[str]:
    described: dict[str, list[Partition]] = {topic.topic: [] for topic in topics}
    for topic, partition in matches:
        described[topic.topic].append(partition)
    for topic in topics:
        if with_topics:
            yield _topic_line(topic)
        for partition in described[topic.topic]:
            yield _partition_line(topic, partition, has_eligible=has_eligible)


def _topic_line(topic: Topic) -> str:
    columns = (
        f"Topic: {topic.topic}",
        f"TopicId: {topic.topic_id}",
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {replication_factor(topic)}",
        f"Configs: {properties(topic.config)}",
        *_deletion(topic),
    )
    return "\t".join(map(printable, columns))


def _partition_line(topic: Topic, partition: Partition, *, has_eligible: bool) -> str:
    moves = (
        (
            f"Adding Replicas: {ids(partition.adding_replicas, none='')}",
            f"Removing Replicas: {ids(partition.removing_replicas, none='')}",
        )
        if partition.is_reassigning
        else ()
    )
    columns = (
        "",
        f"Topic: {topic.topic}",
        f"Partition: {partition.partition}",
        f"Leader: {partition.leader if partition.leader >= 0 else 'none'}",
        f"Replicas: {ids(partition.replicas, none='')}",
        f"Isr: {ids(partition.isr, none='')}",
        *moves,
        # Kafka's tool prints N/A where nothing is known of eligible leader replicas (KIP-966).
        f"Elr: {ids(partition.elr, none='') if has_eligible else 'N/A'}",
        f"LastKnownElr: {ids(partition.last_known_elr, none='') if has_eligible else 'N/A'}",
        *_deletion(topic),
        f"LeaderEpoch: {partition.leader_epoch}",
        f"PartitionEpoch: {partition.partition_epoch}",
        f"HighWatermark: {partition.high_watermark}",
    )
    return "\t".join(columns)


def _deletion(topic: Topic) -> tuple[str, ...]:
    return () if topic.shown_state is TopicState.created else ("MarkedForDeletion: true",)
