"""Advice on standard error about unknown fields of events."""

import click
import msgspec

from isrflow.field_advice import advice_about

ADVICE_MAX = 10
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_kind = msgspec.json.Decoder(str)


class FieldAdvice:
    """Advice about each line with unknown fields, up to a limit, and then the number of further lines."""

    def __init__(self) -> None:
        self._lines = 0

    def about(self, number: int, text: bytes) -> None:
        """Name the fields of an event on line ``number`` that are ignored."""
        given = _names.decode(text)
        if advice := advice_about(_kind.decode(given["kind"]), given):
            self._lines += 1
            if self._lines <= ADVICE_MAX:
                click.echo(f"Line {number}: {advice}", err=True)

    def end(self) -> None:
        """Tell how many more lines have unknown fields."""
        if self._lines > ADVICE_MAX:
            click.echo(f"... and {self._lines - ADVICE_MAX} more lines with such fields.", err=True)
