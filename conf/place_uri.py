"""Places that a setting names by a path or by a URI."""

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


def is_uri(text: str) -> bool:
    """Return whether a place is a URI, and not a path on this machine."""
    return _URI.match(text) is not None


def local_path(text: str) -> Path | None:
    """Return the path on this machine of a path or of a ``file:`` URI; None if the place is elsewhere."""
    if not is_uri(text):
        return Path(text)
    found = urlsplit(text)
    return Path(unquote(found.path)) if found.scheme == "file" and found.netloc in ("", "localhost") else None
