"""A Kafka controller's or broker's ``server.properties``: what the engine reads of it, and what it does not."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from conf.layers import SettingsError
from conf.loader import from_sets
from conf.near_names import suggestion
from isrflow.masking import masked_value
from state.broker_setting_types import UNKNOWN, broker_setting_type
from state.policy import NAMES

BYTES_MAX = 1024 * 1024
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])+)(?:[ \t\f]*[=:][ \t\f]*|[ \t\f]+)?(.*)")
_READ = NAMES | {"super.users"}
# Settings of a controller that a part of isrflow has under another name, or does without.
_ELSEWHERE = {
    "process.roles": "a gateway stands in for the controllers, and brokers have the role broker",
    "node.id": "a gateway has its own: --set node.id",
    "broker.id": "only brokers have it",
    "zookeeper.connect": "the engine has no ZooKeeper; a gateway to brokers in ZooKeeper mode does",
    "authorizer.class.name": "a gateway authorizes (docs/security.md)",
    "advertised.listeners": "a gateway has its own listeners",
    "listeners": "a gateway has its own listeners",
}
_PREFIXES = {
    "controller.": "a gateway leads the brokers' quorum, and has its own settings",
    "metadata.": "a gateway keeps the metadata log, and has its own settings",
    "quorum.": "the engine's bus takes the quorum's place",
    "zookeeper.": "the engine has no ZooKeeper",
    "ssl.": "a gateway's connections to brokers have their own (docs/security.md)",
    "sasl.": "a gateway's connections to brokers have their own (docs/security.md)",
    "listener.": "a gateway has its own listeners",
}
_OF_BROKERS = "only brokers read it: leave it in their files"


class Ignored(NamedTuple):
    """A setting that the engine does not read, and why."""

    name: str
    why: str


class Imported(NamedTuple):
    """What a file says to the engine."""

    values: dict[str, Any]
    ignored: list[Ignored]


def imported(path: Path) -> Imported:
    """Read a ``server.properties``. Raises ``SettingsError`` that names the setting, and no value of a secret."""
    given = _parsed(path)
    values = {key: text for key, text in given.items() if key in _READ}
    checked: dict[str, Any] = {}
    for key, text in values.items():
        try:
            checked |= from_sets([f"{key}={text}"])
        except SettingsError as error:
            told = str(error).removeprefix(f"--set {key}={masked_value(text)}: ")
            raise SettingsError(f"{path}: {told}") from error
    return Imported(checked, [Ignored(key, _why(key)) for key in given if key not in _READ])


def _why(key: str) -> str:
    if key in _ELSEWHERE:
        return _ELSEWHERE[key]
    for prefix, why in _PREFIXES.items():
        if key.startswith(prefix):
            return why
    if broker_setting_type(key) != UNKNOWN:
        return _OF_BROKERS
    return f"Kafka has no such setting; {suggestion(key, sorted(_READ), 'it is left out')}"


def _parsed(path: Path) -> Mapping[str, str]:
    """Read the pairs of a file as Java does: comments, lines that go on after a backslash, escapes."""
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
