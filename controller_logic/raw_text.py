"""An event's text in a ``rejected`` decision."""

from state.entity import SECRET

# In JSON a character takes up to six bytes, and a bus bounds the size of a decision.
RAW_CHARS_MAX = 64 * 1024
# A text with this word may hold a secret, even if it is not an event.
_SECRET = SECRET.encode()
_WITHHELD = "(withheld, because it may hold a SCRAM credential)"


def shown(raw: bytes) -> str:
    """Return an event's text, or its beginning and length if it is long. A text that may hold a secret is withheld."""
    if _SECRET in raw:
        return _WITHHELD
    text = raw.decode(errors="backslashreplace")
    return text if len(text) <= RAW_CHARS_MAX else f"{text[:RAW_CHARS_MAX]}... ({len(raw)} bytes)"
