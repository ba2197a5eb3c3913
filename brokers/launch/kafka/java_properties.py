"""Properties files as Java reads them: Latin-1, with escapes, whatever the locale."""

import struct
from collections.abc import Mapping

_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def properties_text(settings: Mapping[str, str]) -> str:
    """Write settings for ``Properties.load``, in ASCII. Keys are written as they are."""
    return "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items())


def _escaped(value: str) -> str:
    text = "".join(_ESCAPES.get(one) or (one if one.isascii() else _in_utf_16(one)) for one in value)
    # Java drops a space at the beginning.
    return f"\\{text}" if text.startswith(" ") else text


def _in_utf_16(character: str) -> str:
    encoded = character.encode("utf-16-be")
    return "".join(f"\\u{unit:04x}" for (unit,) in struct.iter_unpack(">H", encoded))
