"""Print one place of the state."""

from pathlib import Path

import click
import msgspec

from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, show_json
from cli.state.paths import found_at, path_argument, state_option, tree_of
from conf.settings import Settings


@click.command("cat")
@path_argument
@state_option
@at_option
@format_option
@with_settings
def command(settings: Settings, at: str | None, path: str, file: Path | None, form: str) -> None:
    """Print what is at PATH in the state, as JSON: indented, or with --format json in one line.

    \b
    Examples:
      isrflow state cat /topics/orders
      isrflow state cat /brokers/1/state
      isrflow state cat /controller --format json
    """
    found = found_at(tree_of(settings, file, at), path)
    if form == "json":
        show_json(found)
    else:
        click.echo(msgspec.json.format(msgspec.json.encode(found), indent=2))
