"""What is said on standard error about fields that events do not have."""

import click
import msgspec

from isrflow.field_advice import advice_about

ADVICE_MAX = 10
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_kind = msgspec.json.Decoder(str)


class FieldAdvice:
    """What is said about such fields, line by line: about the first ones, and how many more."""

    def __init__(self) -> None:
        self._lines = 0

    def about(self, number: int, text: bytes) -> None:
        """Say which fields of an event on line ``number`` are ignored."""
        given = _names.decode(text)
        if advice := advice_about(_kind.decode(given["kind"]), given):
            self._lines += 1
            if self._lines <= ADVICE_MAX:
                click.echo(f"Line {number}: {advice}", err=True)

    def end(self) -> None:
        """Say about how many lines there would be more to say."""
        if self._lines > ADVICE_MAX:
            click.echo(f"... and {self._lines - ADVICE_MAX} more lines with such fields.", err=True)
