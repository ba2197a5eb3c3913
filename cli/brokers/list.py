"""List brokers."""

from typing import Any

import click

from cli.brokers.counts import WHAT, counts_columns, counts_of
from cli.brokers.rows import rows_of
from cli.committed import committed
from cli.moment import at_option
from cli.options import existing_bus, with_settings
from cli.output import format_option, show_json, show_table
from conf.settings import Settings
from state.broker import BrokerState

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
@click.option(
    "--counts",
    "counts",
    is_flag=True,
    help="Count each broker's fencings, its restarts, and the ISRs that shrank without it while it served, in the last "
    "hour and day.",
)
@at_option
@format_option
@with_settings
def command(settings: Settings, counts: bool, at: str | None, form: str) -> None:
    """List the registered brokers: their states, and how many partitions they lead and hold.

    \b
    Examples:
      isrflow brokers list
      isrflow brokers list --counts
      isrflow brokers list --format json
    """
    if counts and at is not None:
        raise click.UsageError("--counts looks back from now, so it excludes --at")
    rows = rows_of(committed(settings, at))
    if counts:
        fenced = [row["broker"] for row in rows if row["state"] == BrokerState.fenced.name]
        with existing_bus(settings) as bus:
            hour, day = counts_of(bus, fenced)
        rows = [row | counts_columns(row["broker"], hour, day) for row in rows]
    if form == "json":
        show_json(rows)
        return
    heads = [f"{what.title().replace('_', '')}(1h/1d)" for what in WHAT] if counts else []
    show_table((*_COLUMNS, *heads), ([*_cells(row), *(_lately(row, what) for what in WHAT if counts)] for row in rows))


def _cells(row: dict[str, Any]) -> list[object]:
    return ["-" if row[key] is None else row[key] for key in _COLUMNS.values()]


def _lately(row: dict[str, Any], what: str) -> str:
    return f"{row['last_hour'][what]}/{row['last_day'][what]}"
