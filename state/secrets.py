"""Events, decisions and settings without secrets, as people see them."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from state.broker_setting_types import is_secret
from state.decisions import ConfigDecision, EntityDecision, Rejected, decode, encode
from state.entity import HIDDEN, SECRET, shown_values

_T = TypeVar("_T")
_SECRET = SECRET.encode()
_SETTINGS = b'{"kind":"config"'
_REJECTED = b'{"kind":"rejected"'
# The event that sets settings. A SCRAM credential is in no rejection (``controller_logic.raw_text``).
_CHANGE = "alter_config"
_WITHHELD = "(withheld, because it may hold a secret setting)"


def without_secrets(body: bytes) -> bytes:
    """Return a decision's text, with ``[hidden]`` in place of each secret value."""
    if not (_SECRET in body or body.startswith(_SETTINGS) or _rejects_settings(body)):
        return body
    decision = decode(body)
    if isinstance(decision, Rejected):
        return encode(replace(decision, raw=_shown_raw(decision.raw)))
    if isinstance(decision, EntityDecision):
        return encode(replace(decision, values=shown_values(decision.entity_type, decision.values)))
    if isinstance(decision, ConfigDecision) and decision.entity != "topic":
        config = shown_settings(decision.entity, decision.config)
        in_force = UNSET if decision.in_force is UNSET else shown_settings(decision.entity, decision.in_force)
        return encode(replace(decision, config=config, in_force=in_force))
    return body


def _rejects_settings(body: bytes) -> bool:
    return body.startswith(_REJECTED) and _CHANGE.encode() in body


def _shown_raw(raw: str) -> str:
    """Return a rejected event's text. In a text that cannot be read, a secret could be anywhere."""
    try:
        event = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _WITHHELD if _CHANGE in raw else raw
    shown = shown_event(event)
    if shown == event:
        return raw
    return shown if isinstance(shown, str) else msgspec.json.encode(shown).decode()


def shown_event(event: Any) -> Any:
    """Return an event, as it was read from JSON, without the secret settings in it."""
    if not isinstance(event, dict) or event.get("kind") != _CHANGE or event.get("entity") == "topic":
        return event
    config = event.get("config")
    # A misspelt field may hold the settings too.
    return event | {"config": shown_settings("", config)} if isinstance(config, dict) else _WITHHELD


def shown_settings(entity: str, settings: Mapping[str, _T]) -> dict[str, _T | str]:
    """Return the settings of a topic, a broker or the cluster for people, without secrets. None stays None."""
    return {
        name: HIDDEN if value is not None and entity != "topic" and is_secret(name) else value
        for name, value in settings.items()
    }
