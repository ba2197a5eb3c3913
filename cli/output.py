"""How commands print: a table for people, JSON for programs."""

import io
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click
import msgspec

# How many names of a long list are shown.
SHOWN_MAX = 10
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="The output format.",
)


def text_option(purpose: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add --format to a command that prints lines, and pass it ``form``. ``purpose`` explains the formats."""
    choice = click.Choice(["json", "text"])
    return click.option("--format", "form", type=choice, default="json", show_default=True, help=purpose)


def show_json(document: Any) -> None:
    """Print a document as one line of JSON."""
    write_lines([msgspec.json.encode(document)])


def write_lines(lines: Iterable[bytes]) -> None:
    """Print lines as exactly these bytes."""
    out = sys.stdout.buffer
    out.write(b"".join(line + b"\n" for line in lines))
    out.flush()


def never_fail_to_encode() -> None:
    """Print characters that the terminal's encoding does not have as escapes, like Python's standard error."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def printable(text: str) -> str:
    """Escape characters of an event's text that would leave its line or control the terminal."""
    return text if text.isprintable() else "".join(map(_printable, text))


def _printable(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def show_lines(lines: Iterable[str]) -> None:
    """Print lines for people, which may contain text of events."""
    for line in lines:
        click.echo(printable(line))


def show_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows below their headings: in colour on a terminal, in aligned columns elsewhere."""
    if not sys.stdout.isatty():
        for line in columns(head, rows):
            click.echo(line)
        return
    # A pipe needs no colours, so only a terminal pays for this import.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in head:
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(str(cell))) for cell in row))
    Console().print(table)


def columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Align rows below their headings."""
    table = [tuple(head), *(tuple(printable(str(cell)) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print the fields of one thing, each in a line."""
    pairs = list(fields)
    width = max(len(name) for name, _ in pairs)
    show_lines(f"{name + ':':<{width + 1}}  {value}".rstrip() for name, value in pairs)


def some(names: Sequence[str]) -> str:
    """Return the first names and the number of the others; a dash if there are none."""
    left = len(names) - SHOWN_MAX
    return " ".join(names[:SHOWN_MAX]) + (f" and {left:,} more" if left > 0 else "") or "-"


def ids(brokers: Iterable[int], *, none: str = "-") -> str:
    """Format a list of brokers as Kafka's tools do; ``none`` if it is empty."""
    return ",".join(map(str, brokers)) or none
