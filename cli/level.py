"""The level: which decisions, state and records may be written on a bus."""

import click

from cli.admin_requests import Ask, asks, perform
from cli.committed import committed
from cli.options import with_settings
from cli.output import format_option, show_json
from conf.settings import Settings
from state.level import NEWEST_LEVEL


@click.group("level", invoke_without_command=True)
@format_option
@with_settings
@click.pass_context
def command(context: click.Context, settings: Settings, form: str) -> None:
    """Show the level of a bus, and the highest that this release supports.

    Until the level is raised, the previous release can be started again on the same bus.

    \b
    Examples:
      isrflow level
      isrflow level raise
    """
    if context.invoked_subcommand is not None:
        return
    level = committed(settings).cluster.level
    if form == "json":
        show_json({"level": level, "supported": NEWEST_LEVEL})
    else:
        click.echo(f"The bus is at level {level}. This release supports {NEWEST_LEVEL}.")


@command.command("raise")
@asks
def raise_level(ask: Ask) -> None:
    """Raise the level to the highest that this release supports, if every process on the bus supports it.

    The engine, gateways that live and registered mock brokers count. There is no way back.

    \b
    Examples:
      isrflow level raise --dry-run
      isrflow level raise
    """
    request = {"kind": "raise_level", "level": NEWEST_LEVEL}
    perform(ask, [request], lambda answer: f"The bus is at level {NEWEST_LEVEL}.")
