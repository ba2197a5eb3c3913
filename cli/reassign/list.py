"""List the moves that are under way."""

import click

from cli.committed import committed
from cli.kafka_files import plan_of
from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, ids, show_json, show_table
from conf.settings import Settings
from controller_logic.reassignment import target_of

_FIELDS = ("replicas", "adding_replicas", "removing_replicas", "isr")


@click.command("list")
@at_option
@format_option
@with_settings
def command(settings: Settings, at: str | None, form: str) -> None:
    """List the partitions that are being reassigned. As JSON it is the plan that leads there, and cancel takes it.

    \b
    Examples:
      isrflow reassign list
      isrflow reassign list --format json
    """
    found = committed(settings, at)
    moving = [(t.topic, p) for t in found.topics.values() for p in t.partitions if p.is_reassigning]
    if form == "json":
        show_json(plan_of({(topic, p.partition): target_of(p) for topic, p in moving}))
    elif not moving:
        click.echo("No partition is being reassigned.")
    else:
        rows = ((topic, p.partition, *(ids(getattr(p, name)) for name in _FIELDS)) for topic, p in moving)
        show_table(("Topic", "Partition", "Replicas", "Adding", "Removing", "Isr"), rows)
