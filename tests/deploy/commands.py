"""Whether a line that starts isrflow is one that isrflow understands."""

from collections.abc import Sequence
from typing import Any

import click

from cli.commands import command


def understood(words: Sequence[str]) -> dict[str, Any]:
    """Return the options of a line without the word isrflow. Raises ``click.ClickException`` if it is none."""
    name, *left = words
    found = command.get_command(click.Context(command), name)
    assert found is not None, name
    return found.make_context(name, left).params
