"""The runbook knows every alert, and its commands are commands."""

import re
import shlex
from pathlib import Path

import click
import pytest

from cli.commands import command

ROOT = Path(__file__).parents[2]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
RULES = (ROOT / "deploy" / "prometheus" / "isrflow.rules.yml").read_text()
COMMANDS = sorted(set(re.findall(r"`isrflow ([^`]+)`", RUNBOOK)))


def test_every_alert_has_a_row_and_every_name_is_an_alert() -> None:
    assert set(re.findall(r"\bIsrflow\w+", RUNBOOK)) == set(re.findall(r"alert: (\w+)", RULES))


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_runbook_is_understood(line: str) -> None:
    context, words = click.Context(command), shlex.split(line)
    found: click.Command = command
    while isinstance(found, click.Group):
        name, words = words[0], words[1:]
        inner = found.get_command(context, name)
        assert inner is not None, f"{name} in {line!r}"
        found = inner
    try:
        found.make_context(line, list(words))
    except click.exceptions.Exit as end:
        assert (end.exit_code, "--help" in words) == (0, True)
    except click.MissingParameter:
        # The text leaves out what only the reader knows, such as a file.
        assert not words


def test_the_runbook_has_commands() -> None:
    assert len(COMMANDS) > 20
