"""List brokers."""

import click

from cli.brokers.rows import rows_of
from cli.committed import committed
from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, show_json, show_table
from conf.settings import Settings

_COLUMNS = {
    "Broker": "broker",
    "State": "state",
    "Rack": "rack",
    "Leads": "leads",
    "Replicas": "replicas",
    "InSync": "in_sync",
    "BrokerEpoch": "broker_epoch",
    "Backlog": "backlog",
}


@click.command("list")
@at_option
@format_option
@with_settings
def command(settings: Settings, at: str | None, form: str) -> None:
    """List the registered brokers: their states, and how many partitions they lead and hold.

    \b
    Examples:
      isrflow brokers list
      isrflow brokers list --format json
    """
    rows = rows_of(committed(settings, at))
    if form == "json":
        show_json(rows)
        return
    show_table(tuple(_COLUMNS), (["-" if row[key] is None else row[key] for key in _COLUMNS.values()] for row in rows))
