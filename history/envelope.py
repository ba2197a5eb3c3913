"""An event in an envelope: one line of JSON with the event's exact bytes and what the bus knows about it.

    {"envelope":1,"seq":7,"entered_ms":1000,"is_claim":false,"found_ms":null,"event":{"kind":"tick","time_ms":1000}}

The envelope has the event as it was published, byte for byte. Bytes that cannot stand in a line of JSON are written
as ``event_base64`` instead.
"""

import msgspec

from bus.interface import Entry
from state.limits import TimeMs

_VERSION = 1
_MARK = b'{"envelope":'


class _Envelope(msgspec.Struct, forbid_unknown_fields=True):
    envelope: int
    seq: int
    entered_ms: TimeMs | None = None
    is_claim: bool | None = None
    found_ms: TimeMs | None = None
    event: msgspec.Raw = msgspec.Raw(b"")
    event_base64: bytes | None = None


_decoder = msgspec.json.Decoder(_Envelope)
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def enveloped(entry: Entry) -> bytes:
    """Put an event into an envelope, without the end of the line."""
    facts = (_VERSION, entry.seq, entry.entered_ms, entry.is_claim, entry.found_ms)
    head = b'{"envelope":%b,"seq":%b,"entered_ms":%b,"is_claim":%b,"found_ms":%b,' % tuple(
        msgspec.json.encode(fact) for fact in facts
    )
    line = b'%b"event":%b}' % (head, entry.raw)
    if _is_faithful(line, entry):
        return line
    return b'%b"event_base64":%b}' % (head, msgspec.json.encode(entry.raw))


def _is_faithful(line: bytes, entry: Entry) -> bool:
    """Return whether ``line`` is one line from which every reader of JSON gets the same event."""
    if b"\n" in entry.raw or b"\r" in entry.raw:
        return False
    try:
        line.decode()
        msgspec.json.decode(entry.raw)
        return opened(line) == entry
    except (ValueError, *_UNREADABLE):
        return False


def is_envelope(line: bytes) -> bool:
    """Return whether a line is an envelope, and no bare event."""
    return line.startswith(_MARK)


def opened(line: bytes) -> Entry | None:
    """Take an event out of its envelope. Return None for any other line, which may be a bare event.

    Raises ``ValueError`` for an envelope that is damaged or of a later version.
    """
    if not is_envelope(line):
        return None
    try:
        held = _decoder.decode(line)
    except _UNREADABLE as error:
        raise ValueError(f"the envelope cannot be read: {error}") from error
    if held.envelope != _VERSION:
        raise ValueError(f"the envelope has version {held.envelope}; this isrflow reads version {_VERSION}")
    if not 0 < held.seq < 2**63:
        raise ValueError(f"seq is {held.seq}; expected a positive integer")
    raw = bytes(held.event) if held.event_base64 is None else held.event_base64
    if held.event_base64 is None and not raw:
        raise ValueError("the envelope is empty: expected event or event_base64")
    return Entry(held.seq, raw, held.entered_ms, held.is_claim, held.found_ms)
