"""Draw the state as a tree."""

from pathlib import Path

import click

from cli.moment import at_option
from cli.options import with_settings
from cli.output import format_option, show_json
from cli.state.paths import drawn, found_at, path_argument, state_option, tree_of
from conf.settings import Settings


@click.command("tree")
@path_argument
@state_option
@click.option("--depth", type=click.IntRange(min=0), default=2, show_default=True, help="How many levels to show.")
@at_option
@format_option
@with_settings
def command(settings: Settings, at: str | None, path: str, file: Path | None, depth: int, form: str) -> None:
    """Draw what is below PATH in the state. Deeper levels are only counted.

    \b
    Examples:
      isrflow state tree
      isrflow state tree /topics/orders --depth 5
    """
    found = found_at(tree_of(settings, file, at), path)
    if form == "json":
        show_json(found)
        return
    name = path.strip("/").rpartition("/")[2]
    drawn(found, name, depth, click.echo)
