"""Fields of events whose names are probably mistyped.

A field that a kind of event does not have is no error, because authors may add some of their own. But an event with
``validateOnly`` is carried out.
"""

import difflib

import click
import msgspec

from state.events import AnyEvent

ADVICE_MAX = 10
_LIKENESS_MIN = 0.75
_FIELDS = {
    str(kind.__struct_config__.tag): {"kind", *(field.encode_name for field in msgspec.structs.fields(kind))}
    for kind in AnyEvent.__args__
}
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_kind = msgspec.json.Decoder(str)


class FieldAdvice:
    """What is said on standard error about such fields, line by line: about the first ones, and how many more."""

    def __init__(self) -> None:
        self._lines = 0

    def about(self, number: int, text: bytes) -> None:
        """Say what is probably mistyped in an event on line ``number``."""
        if advice := advice_about(text):
            self._lines += 1
            if self._lines <= ADVICE_MAX:
                click.echo(f"Line {number}: {advice}", err=True)

    def end(self) -> None:
        """Say about how many lines there would be more to say."""
        if self._lines > ADVICE_MAX:
            click.echo(f"... and {self._lines - ADVICE_MAX} more lines with such fields.", err=True)


def advice_about(event: bytes) -> str:
    """Say which field of an event is ignored although its name is like that of one which is missing; or nothing."""
    given = _names.decode(event)
    kind = _kind.decode(given["kind"])
    known = _FIELDS[kind]
    for name in given.keys() - known:
        near = difflib.get_close_matches(name, known - given.keys(), n=1, cutoff=_LIKENESS_MIN)
        if near:
            return f"{kind} has no field {name!r}, so it is ignored; did you mean {near[0]!r}?"
    return ""
