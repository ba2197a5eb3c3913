"""How deep a JSON text nests, found without recursion."""

from array import array
from itertools import accumulate

# Far more levels than any event has, and few enough for a recursive reader on any stack.
LEVELS_MAX = 100
_OTHERS = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_AS_STEPS = bytes.maketrans(b"[]", b"\x01\xff")
# Events nest some six levels deep.
_USUAL_LEVELS = 12


def is_too_deep(text: bytes) -> bool:
    """Return whether arrays and objects nest deeper than ``LEVELS_MAX``, even in unknown fields.

    A recursive reader gives up at the end of its stack, and how far that is depends on its caller. One text would be
    an event in one place and malformed in another. This limit is far from the end of any stack. Time and memory are
    proportional to the text. In a text that is not JSON, only the part that a reader could read counts.
    """
    if text.count(b"[") + text.count(b"{") <= LEVELS_MAX:
        return False
    if b"\\" in text:
        text = text.replace(rb"\\", b"").replace(rb"\"", b"")
    marks = text.translate(_AS_BRACKETS, _OTHERS)
    # Strings without a bracket are dropped first, because most texts have no others.
    brackets = b"".join(marks.replace(b'""', b"").split(b'"')[::2])
    if _is_shallow(brackets):
        return False
    steps = array("b", brackets.translate(_AS_STEPS))
    return max(accumulate(steps), default=0) > LEVELS_MAX


def _is_shallow(brackets: bytes) -> bool:
    """Return whether brackets close and nest at most ``_USUAL_LEVELS`` deep.

    Each round removes the innermost level. To count takes three to five times as long.
    """
    for _ in range(_USUAL_LEVELS):
        brackets = brackets.replace(b"[]", b"")
    return not brackets
