"""The events that only the engine may publish."""

from collections.abc import Sequence

import msgspec

from bus.interface import EngineOnlyError
from state.engine_events import ENGINE_KINDS
from state.events import ControllerStarted, Tick


class _Kind(msgspec.Struct):
    kind: str | None = None


_STARTED = str(ControllerStarted.__struct_config__.tag)
_TICK = str(Tick.__struct_config__.tag)
_kind = msgspec.json.Decoder(_Kind)


def engine_kind_of(raw: bytes) -> str | None:
    """Return an event's kind if only the engine makes it; None otherwise, also for text that is no event."""
    try:
        kind = _kind.decode(raw).kind
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return kind if kind in ENGINE_KINDS else None


def is_started(raw: bytes) -> bool:
    """Say whether an event is a ``controller_started``."""
    return engine_kind_of(raw) == _STARTED


def is_tick(raw: bytes) -> bool:
    """Say whether an event is a ``tick``."""
    return engine_kind_of(raw) == _TICK


def refuse_engine_kinds(events: Sequence[bytes]) -> None:
    """Raise ``EngineOnlyError`` if one of ``events`` is of a kind that only the engine makes."""
    for number, raw in enumerate(events, start=1):
        kind = engine_kind_of(raw)
        if kind is not None:
            raise EngineOnlyError(f"event {number} of {len(events)} is a {kind}, which only the engine makes")
