"""Events, decisions and settings as people see them, without secrets."""

from collections.abc import Mapping
from typing import TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from state.broker_setting_types import is_secret
from state.decisions import ConfigDecision, EntityDecision, decode, encode
from state.entity import HIDDEN, SECRET, shown_values

_T = TypeVar("_T")
_SECRET = SECRET.encode()
_SETTINGS = b'{"kind":"config"'


def without_secrets(body: bytes) -> bytes:
    """Return a decision's text, with ``[hidden]`` in the place of each secret value."""
    if _SECRET not in body and not body.startswith(_SETTINGS):
        return body
    decision = decode(body)
    if isinstance(decision, EntityDecision):
        return encode(replace(decision, values=shown_values(decision.entity_type, decision.values)))
    if isinstance(decision, ConfigDecision) and decision.entity != "topic":
        config = shown_settings(decision.entity, decision.config)
        in_force = UNSET if decision.in_force is UNSET else shown_settings(decision.entity, decision.in_force)
        return encode(replace(decision, config=config, in_force=in_force))
    return body


def shown_settings(entity: str, settings: Mapping[str, _T]) -> dict[str, _T | str]:
    """Return the settings of a topic, a broker or the cluster for people, without secrets. None stays None."""
    return {
        name: HIDDEN if value is not None and entity != "topic" and is_secret(name) else value
        for name, value in settings.items()
    }
