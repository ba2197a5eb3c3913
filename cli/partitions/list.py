"""List partitions."""

import click

from cli.brokers.rows import check_known
from cli.committed import committed
from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, ids, show_json, show_table
from cli.partition_filters import Filters, filtered
from cli.topic_argument import topic_filter
from conf.settings import Settings
from state.view import eligible_fields

_FIELDS = (
    *("partition", "leader", "replicas", "isr"),
    *("adding_replicas", "removing_replicas", "leader_epoch", "high_watermark"),
)
_HEAD = ("Topic", "Partition", "Leader", "Replicas", "Isr", "Adding", "Removing", "LeaderEpoch", "HighWatermark")
_ELIGIBLE_HEAD = ("Elr", "LastKnownElr")


@click.command("list")
@topic_filter("Only partitions of this topic.")
@click.option("--broker", type=int, metavar="ID", help="Only partitions with a replica on this broker.")
@click.option("--led-by", type=int, metavar="ID", help="Only partitions that this broker leads.")
@at_option
@format_option
@filtered
@with_settings
def command(
    settings: Settings,
    at: str | None,
    topic: str | None,
    broker: int | None,
    led_by: int | None,
    form: str,
    filters: Filters,
) -> None:
    """List partitions as last committed. Several filters must all match.

    \b
    Examples:
      isrflow partitions list --led-by 1
      isrflow partitions list --topic orders --under-min-isr-partitions --format json
    """
    found = committed(settings, at)
    topics = [found.topic(topic)] if topic is not None else list(found.topics.values())
    for number in (broker, led_by):
        if number is not None:
            check_known(found, number)
    wanted = [
        (of, partition)
        for of, partition in filters.matches(found, topics)
        if (broker is None or broker in partition.replicas) and (led_by is None or led_by == partition.leader)
    ]
    has_eligible = found.cluster.has_eligible_leaders
    rows = [
        {"topic": of.topic}
        | {name: getattr(partition, name) for name in _FIELDS}
        | eligible_fields(partition, has_eligible=has_eligible)
        for of, partition in wanted
    ]
    if form == "json":
        show_json(rows)
        return
    # Two more columns only if there is anything in them.
    head = (*_HEAD, *_ELIGIBLE_HEAD) if any(partition.has_eligible for _, partition in wanted) else _HEAD
    names = ("topic", *_FIELDS, "elr", "last_known_elr")[: len(head)]
    show_table(head, ([_cell(name, row.get(name, ())) for name in names] for row in rows))


def _cell(name: str, value: object) -> object:
    if isinstance(value, tuple):
        return ids(value)
    return "none" if name == "leader" and value == -1 else value
