"""A Kafka controller's or broker's ``server.properties``: what the engine reads of it, and what it does not."""

from pathlib import Path
from typing import Any, NamedTuple

from conf.layers import SettingsError
from conf.loader import FROM_KAFKA, from_sets
from conf.near_names import suggestion
from conf.properties_file import pairs_in
from isrflow.masking import masked_value
from state.broker_setting_types import UNKNOWN, broker_setting_type

_A_GATEWAY = "a gateway's: isrflow gateway kraft --conf reads what it can of the same file"
# Settings of a controller that a part of isrflow has under another name, or does without.
_ELSEWHERE = {
    "process.roles": "a gateway stands in for the controllers, and brokers have the role broker",
    "node.id": _A_GATEWAY,
    "broker.id": "only brokers have it",
    "zookeeper.connect": "the engine has no ZooKeeper; a gateway to brokers in ZooKeeper mode does",
    "authorizer.class.name": _A_GATEWAY,
    "advertised.listeners": "a gateway has its own listeners",
    "listeners": _A_GATEWAY,
}
_PREFIXES = {
    "controller.": _A_GATEWAY,
    "metadata.": _A_GATEWAY,
    "quorum.": "the engine's bus takes the quorum's place",
    "zookeeper.": "the engine has no ZooKeeper",
    "ssl.": _A_GATEWAY,
    "sasl.": _A_GATEWAY,
    "listener.": _A_GATEWAY,
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
    given = pairs_in(path)
    values = {key: text for key, text in given.items() if key in FROM_KAFKA}
    checked: dict[str, Any] = {}
    for key, text in values.items():
        try:
            checked |= from_sets([f"{key}={text}"])
        except SettingsError as error:
            told = str(error).removeprefix(f"--set {key}={masked_value(text)}: ")
            raise SettingsError(f"{path}: {told}") from error
    return Imported(checked, [Ignored(key, _why(key)) for key in given if key not in FROM_KAFKA])


def _why(key: str) -> str:
    if key in _ELSEWHERE:
        return _ELSEWHERE[key]
    for prefix, why in _PREFIXES.items():
        if key.startswith(prefix):
            return why
    if broker_setting_type(key) != UNKNOWN:
        return _OF_BROKERS
    return f"Kafka has no such setting; {suggestion(key, sorted(FROM_KAFKA), 'it is left out')}"
