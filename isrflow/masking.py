"""Hide the passwords in URLs before they reach a terminal or a log."""

import re

# From the slashes to the last @ of a word. No scheme is needed, because messages may cut it off.
_CREDENTIALS = re.compile(r"//[^ \t\r\n'\"]*@")
_MASK = "//***@"


def masked(text: str) -> str:
    """Return ``text`` with ``***`` for the user and password of each URL in it."""
    return _CREDENTIALS.sub(_MASK, text) if "@" in text else text


def masked_value(value: str) -> str:
    """Return a single value, such as a URL, with ``***`` for everything before the last @."""
    scheme, slashes, rest = value.rpartition("//")
    return f"{scheme}{slashes}***@{rest.rpartition('@')[2]}" if "@" in rest else value
