"""How deep a JSON text nests, told without recursion."""

from array import array
from itertools import accumulate

# Far more than any event has, and few enough for any reader, whatever stack it stands on.
LEVELS_MAX = 100
_OTHERS = bytes(byte for byte in range(256) if byte not in b'"[]{}')
_AS_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def is_too_deep(text: bytes) -> bool:
    """Say whether arrays and objects nest deeper than ``LEVELS_MAX``, also in fields that nobody reads.

    A reader that recurses gives up where its stack ends, and how far away that is depends on who called it: one text
    would be an event in one place and none in another. So the limit is one that no stack comes near. Time and memory
    stay in proportion to the text. Of a text that is no JSON only so much counts as a reader would get through.
    """
    if text.count(b"[") + text.count(b"{") <= LEVELS_MAX:
        return False
    marks = text.replace(rb"\\", b"").replace(rb"\"", b"").translate(None, _OTHERS)
    # Strings without a bracket go first: most texts have no others, and what is left is short.
    outside_strings = marks.replace(b'""', b"").split(b'"')[::2]
    steps = array("b", b"".join(outside_strings).translate(_AS_STEPS))
    return max(accumulate(steps), default=0) > LEVELS_MAX
