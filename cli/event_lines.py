"""Lines of text that should be events: read and check them, and describe what is wrong."""

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, get_args

import click
import msgspec

from bus.clock import now_ms
from bus.interface import MAX_EVENT_BYTES
from cli.errors import WrongUse
from conf.near_names import suggestion
from history.envelope import is_envelope
from isrflow.engine_only import engine_kind_of
from isrflow.field_advice import advice_about
from state.event_text import decode
from state.events import AnyEvent, Malformed

CHUNK_BYTES = 256 * 1024
COMPLAINTS_SHOWN = ADVICE_MAX = 10
NOTHING = "Nothing was published."
KINDS = sorted(str(kind.__struct_config__.tag) for kind in AnyEvent.__args__)


class _Timed(msgspec.Struct):
    time_ms: msgspec.Raw = msgspec.Raw(b"")


_timed = msgspec.json.Decoder(_Timed)
_names = msgspec.json.Decoder(dict[str, msgspec.Raw])
_kind = msgspec.json.Decoder(str)


class Checked(NamedTuple):
    """What a check found: the number of events, and the first complaints about the other lines."""

    events: int
    complaints: list[str]
    wrong: int


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


def chunks_of(stream: BinaryIO) -> Iterator[list[bytes]]:
    """Split the available input into lines, without waiting for more. An overlong line is cut off."""
    read = getattr(stream, "read1", stream.read)
    rest = b""
    while chunk := read(CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_EVENT_BYTES:
            lines, rest = [*lines, rest], b""
        yield lines
    if rest:
        yield [rest]


def check(stream: BinaryIO) -> Checked:
    """Check every line of a stream. Raises ``WrongUse`` if it is a binary file."""
    advice = FieldAdvice()
    number = events = wrong = 0
    complaints: list[str] = []
    for lines in chunks_of(stream):
        for line in lines:
            number += 1
            text = line.strip()
            if not text:
                continue
            complaint = complaint_about(text)
            if complaint is None:
                advice.about(number, text)
                events += 1
                continue
            refuse_binary(number, text, NOTHING)
            wrong += 1
            if len(complaints) < COMPLAINTS_SHOWN:
                complaints.append(f"line {number} {complaint}")
    advice.end()
    return Checked(events, complaints, wrong)


def refuse_binary(number: int, text: bytes, published: str) -> None:
    """Raise ``WrongUse`` if a line has a byte that text never has. ``published`` tells what was published before."""
    if b"\0" in text:
        raise WrongUse(f"line {number} holds a zero byte: this is a binary file, not events. {published}")


def complaint_about(text: bytes) -> str | None:
    """Return why a client may not publish a line as an event; None if it may."""
    never = never_published(text)
    if never is not None:
        return never
    event = decode(with_time(text))
    if not isinstance(event, Malformed):
        return None
    return wrong_with(event, text)


def wrong_with(event: Malformed, text: bytes) -> str:
    """Return why a text is not an event, to follow the name of the text in a sentence."""
    if event.field == "kind" and event.request:
        near = suggestion(event.request, KINDS, "")
        hint = f" ({near})" if near else f"; expected one of {', '.join(KINDS)}"
        return f"has the unknown kind {event.request!r}{hint}"
    if is_envelope(text):
        return "is an envelope of 'isrflow events', which only 'isrflow replay' opens: the event is in it"
    if event.field == "kind" and "missing" in event.message:
        return "has no kind: 'isrflow schema events' describes all kinds of events"
    return f"is not an event: {event.field + ': ' if event.field else ''}{event.message}{_allowed(event)}"


def _allowed(event: Malformed) -> str:
    """List the values of a field that has few of them, because the message about it does not."""
    struct = next((kind for kind in AnyEvent.__args__ if kind.__struct_config__.tag == event.request), None)
    types = {field.encode_name: field.type for field in msgspec.structs.fields(struct)} if struct else {}
    allowed = [str(value) for value in get_args(types.get(event.field)) if isinstance(value, str)]
    return f"; expected one of {', '.join(allowed)}" if allowed else ""


def never_published(text: bytes) -> str | None:
    """Return why a line cannot be published at all; None if it can."""
    if len(text) > MAX_EVENT_BYTES:
        return f"has more than {MAX_EVENT_BYTES} bytes, too long for an event"
    kind = engine_kind_of(text)
    return None if kind is None else f"is a {kind}, which only the engine makes"


def with_time(text: bytes) -> bytes:
    """Add ``time_ms`` to an event that lacks it. The rest of its text is unchanged."""
    try:
        if _timed.decode(text).time_ms:
            return text
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return text
    head = text[:-1].rstrip()
    comma = b"" if head.endswith(b"{") else b","
    return head + comma + b'"time_ms":%d}' % now_ms()
