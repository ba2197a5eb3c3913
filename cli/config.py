"""Bring settings along from Kafka's own files."""

from pathlib import Path
from typing import Any

import click
import msgspec

from cli.errors import WrongUse
from cli.output import printable
from conf.broker_properties import imported
from conf.counted import counted
from conf.layers import SettingsError


@click.group("config")
def command() -> None:
    """Bring settings along from Kafka's own files.

    \b
    Examples:
      isrflow config import server.properties
      isrflow config import server.properties > isrflow.toml
    """


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
def import_file(file: Path) -> None:
    """Print what the engine reads of a controller's server.properties, as a file for --conf.

    Comments name what is left out, and why. No value of it is printed.

    \b
    Examples:
      isrflow config import server.properties
      isrflow config import server.properties > isrflow.toml
    """
    try:
        found = imported(file)
    except SettingsError as error:
        raise WrongUse(str(error)) from error
    for key, value in sorted(found.values.items()):
        click.echo(f"{key} = {_in_toml(value)}")
    click.echo(f"\n# {counted(len(found.values), 'setting')} taken, {len(found.ignored)} left out:")
    for name, why in found.ignored:
        click.echo(f"# {printable(name)}: {why}")


def _in_toml(value: Any) -> str:
    # A value of TOML is written as in JSON, if it is text, a number or a truth value.
    return msgspec.json.encode(value).decode()
