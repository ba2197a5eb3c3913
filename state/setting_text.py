"""A setting's text, read as Kafka reads it: trimmed, and numbers with ``Integer.parseInt`` (``ConfigDef.parseType``).

Java also reads digits of other scripts. Which ones depends on its release, so only those of ASCII are read here.
"""

import re

# What Java's ``String.trim`` removes.
_TRIMMED = "".join(map(chr, range(0x21)))
_WHOLE = re.compile(r"([+-]?)([0-9]+)")
# No setting may have more, and Python refuses to read a number with thousands of digits.
_DIGITS_MAX = 20


def trimmed(text: str) -> str:
    """Remove the white space that Kafka removes. Other white space makes a number unreadable."""
    return text.strip(_TRIMMED)


def whole_number(text: str) -> int | None:
    """Read a whole number, such as `` 2``, ``+2`` or ``02``; None for other text. Digits after the 20th are cut."""
    found = _WHOLE.fullmatch(trimmed(text))
    if found is None:
        return None
    sign, digits = found.groups()
    return int(sign + (digits.lstrip("0")[:_DIGITS_MAX] or "0"))


def switch(text: str) -> bool | None:
    """Read ``true`` or ``false`` in upper or lower case; None if it is neither."""
    return {"true": True, "false": False}.get(trimmed(text).lower())


def plainly_written(text: str) -> str:
    """Write a value without white space, and a whole number without a plus sign and without zeros before it."""
    number = whole_number(text)
    return trimmed(text) if number is None else str(number)
