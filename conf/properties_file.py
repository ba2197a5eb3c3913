"""Java's files of properties, such as Kafka's ``server.properties``."""

import re
from pathlib import Path

from conf.settings_error import SettingsError

SUFFIX = ".properties"
BYTES_MAX = 1024 * 1024
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])+)(?:[ \t\f]*[=:][ \t\f]*|[ \t\f]+)?(.*)")


def pairs_in(path: Path) -> dict[str, str]:
    """Read the pairs of a file as Java does: comments, lines that go on after a backslash, escapes.

    Raises ``SettingsError``.
    """
    try:
        if path.stat().st_size > BYTES_MAX:
            raise SettingsError(f"{path} has more than {BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{path}: expected UTF-8 text") from error
    found: dict[str, str] = {}
    begun = ""
    for line in [*text.splitlines(), ""]:
        stripped = line.lstrip(" \t\f")
        if not begun and (not stripped or stripped[0] in "#!"):
            continue
        slashes = len(stripped) - len(stripped.rstrip("\\"))
        if slashes % 2:
            begun += stripped[:-1]
            continue
        pair = _PAIR.fullmatch(begun + stripped)
        begun = ""
        if pair:
            found[_unescaped(pair[1])] = _unescaped(pair[2])
    return found


def _unescaped(text: str) -> str:
    def one(match: re.Match[str]) -> str:
        escaped = match[1]
        return chr(int(escaped[1:], 16)) if len(escaped) > 1 else _ESCAPES.get(escaped, escaped)

    return _ESCAPE.sub(one, text)
