"""Every command that a document, an alert or a message names exists, with the options that are named."""

import re
from pathlib import Path

import click
import pytest

from cli.commands import command
from tests.support.rooms import ROOMS

ROOT = Path(__file__).parents[2]
# In a document between backticks; in a message between quotes, because the reader is to type it.
NAMED = re.compile(r"`isrflow ([^`\n]+)`|'isrflow ([^'\n{]+)'")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def files() -> list[Path]:
    found = [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "deploy").rglob("*.y*ml"),
        *(ROOT / "conf").glob("*reference.toml"),
    ]
    return [*found, *(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))]


def lines_in(text: str) -> list[str]:
    """Return what stands behind ``isrflow``. A table has several subcommands with bars between them."""
    return [first or second for first, second in NAMED.findall(text)]


def complaint_about(line: str) -> str | None:
    context, words = click.Context(command), line.split()
    ends: list[click.Command] = [command]
    while words and isinstance(ends[0], click.Group) and re.match(r"[a-z]", words[0]):
        found = [ends[0].get_command(context, name.strip(".,;:")) for name in words.pop(0).split("\\|")]
        if None in found:
            return f"no command: isrflow {line}"
        ends = [one for one in found if one]
    known = {
        option for end in ends for parameter in end.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    unknown = set(OPTION.findall(line)) - known - {"--help"}
    return f"no option {unknown}: isrflow {line}" if unknown else None


def test_every_command_that_is_named_is_there() -> None:
    named = [(path, line) for path in files() for line in lines_in(path.read_text())]
    assert len(named) > 150
    assert [(str(path), found) for path, line in named if (found := complaint_about(line))] == []


@pytest.mark.parametrize(
    "line", ["explain", "partitions explane t-0", "partitions list\\|explane", "health --what", "publish FILE --wat"]
)
def test_what_is_no_command_is_found(line: str) -> None:
    assert complaint_about(lines_in(f"see `isrflow {line}`.")[0])
