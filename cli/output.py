"""How commands print: a table for people, JSON for programs."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
import msgspec

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="The output format.",
)


def show_json(document: Any) -> None:
    """Print a document as one line of JSON."""
    sys.stdout.buffer.write(msgspec.json.encode(document) + b"\n")
    sys.stdout.buffer.flush()


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
        table.add_row(*(Text(str(cell)) for cell in row))
    Console().print(table)


def columns(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Align rows below their headings."""
    table = [tuple(head), *(tuple(str(cell) for cell in row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def show_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Print one thing, a field a line."""
    pairs = list(fields)
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        click.echo(f"{name + ':':<{width + 1}}  {value}".rstrip())


def ids(brokers: Iterable[int], *, none: str = "-") -> str:
    """Format a list of brokers as Kafka's tools do; ``none`` if it is empty."""
    return ",".join(map(str, brokers)) or none
