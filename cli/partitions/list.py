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

_FIELDS = (
    *("partition", "leader", "replicas", "isr"),
    *("adding_replicas", "removing_replicas", "leader_epoch", "high_watermark"),
)
_HEAD = ("Topic", "Partition", "Leader", "Replicas", "Isr", "Adding", "Removing", "LeaderEpoch", "HighWatermark")


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
    rows = [{"topic": of.topic} | {name: getattr(partition, name) for name in _FIELDS} for of, partition in wanted]
    if form == "json":
        show_json(rows)
        return
    cells = ([_cell(name, value) for name, value in row.items()] for row in rows)
    show_table(_HEAD, cells)


def _cell(name: str, value: object) -> object:
    if isinstance(value, tuple):
        return ids(value)
    return "none" if name == "leader" and value == -1 else value
