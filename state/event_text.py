"""Events read from their JSON text, and what is wrong with a text that is not an event."""

import difflib
import re
from typing import TypeVar

import msgspec

from state.events import AnyEvent, Malformed
from state.limits import Text
from state.nesting import LEVELS_MAX, is_too_deep

# A complaint quotes the value, which may be megabytes long.
MESSAGE_CHARS_MAX = 1_024


class _Known(msgspec.Struct):
    kind: msgspec.Raw = msgspec.Raw(b"null")
    time_ms: msgspec.Raw = msgspec.Raw(b"null")
    request_id: msgspec.Raw = msgspec.Raw(b"null")


_BYTE_ORDER_MARKS = {b"\xef\xbb\xbf": "UTF-8", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}
# A zero, and the number of a schema.
_REGISTRY_BYTES = 5
_T = TypeVar("_T")
_UNREADABLE = (msgspec.MsgspecError, ValueError, OverflowError, RecursionError)
_decoder: msgspec.json.Decoder[AnyEvent] = msgspec.json.Decoder(AnyEvent)
_known = msgspec.json.Decoder(_Known)
_kind: msgspec.json.Decoder[str] = msgspec.json.Decoder(Text)
_request_id: msgspec.json.Decoder[str | int | None] = msgspec.json.Decoder(Text | int | None)
_KINDS = sorted(str(kind.__struct_config__.tag) for kind in AnyEvent.__args__)
_PATH = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`(?P<path>[^`]*)`)?", re.DOTALL)
_MISSING = re.compile(r"missing required field `([^`]*)`")


def decode(raw: bytes) -> AnyEvent | Malformed:
    """Read one event from its JSON text; return ``Malformed`` if it is not an event.

    Never raises, and gives the same result wherever it is called. ``field`` is the path of the field in question
    (``isr[1]``), or empty if the whole text is not a JSON object.
    """
    if is_too_deep(raw):
        return Malformed(field="", message=f"it nests deeper than {LEVELS_MAX} levels")
    try:
        return _decoder.decode(raw)
    except msgspec.ValidationError as error:
        return _malformed(raw, str(error))
    except _UNREADABLE as error:
        return Malformed(field="", message=_bounded(f"not a JSON object: {_foreign(raw) or error}"))


def _foreign(raw: bytes) -> str:
    """Describe what some writers put before JSON, if a text begins with it; empty if not."""
    if not raw:
        return "the record has no value"
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if raw.startswith(mark):
            return f"it begins with a byte order mark ({encoding}): expected UTF-8 without one"
    if raw[0] == 0 and len(raw) >= _REGISTRY_BYTES:
        schema = int.from_bytes(raw[1:_REGISTRY_BYTES])
        return f"it begins with the {_REGISTRY_BYTES} bytes of a schema registry (schema {schema}): expected plain JSON"
    return ""


def _malformed(raw: bytes, message: str) -> Malformed:
    matched = _PATH.fullmatch(message)
    what, path = (matched["what"], matched["path"] or "") if matched else (message, "")
    field = path.removeprefix("$").removeprefix(".")
    missing = _MISSING.search(what)
    if missing:
        field = f"{field}.{missing[1]}".removeprefix(".")
    what = _bounded(what)
    known = _read(_known, raw, _Known())
    request_id, request = _read(_request_id, known.request_id, None), _read(_kind, known.kind, "")
    if field == "kind":
        what = f"{what}; {_expected_kind(request)}"
    return Malformed(field=field, message=what, request_id=request_id, request=request)


def _expected_kind(kind: str) -> str:
    near = difflib.get_close_matches(kind, _KINDS, n=1)
    return f"did you mean {near[0]!r}?" if near else f"expected one of {', '.join(_KINDS)}"


def _read(decoder: "msgspec.json.Decoder[_T]", raw: bytes | msgspec.Raw, otherwise: _T) -> _T:
    try:
        return decoder.decode(raw)
    except _UNREADABLE:
        return otherwise


def _bounded(message: str) -> str:
    length = len(message)
    return message if length <= MESSAGE_CHARS_MAX else f"{message[:MESSAGE_CHARS_MAX]}... ({length} characters)"
