"""The events that only the engine may publish."""

from collections.abc import Sequence

import msgspec

from isrflow.contract import ENGINE_KINDS
from isrflow.errors import EngineOnlyError


class _Kind(msgspec.Struct):
    kind: str | None = None


_kind = msgspec.json.Decoder(_Kind)


def engine_kind_of(raw: bytes) -> str | None:
    """Return an event's kind if only the engine makes it; None otherwise, also for text that is not an event."""
    try:
        kind = _kind.decode(raw).kind
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    return kind if kind in ENGINE_KINDS else None


def refuse_engine_kinds(events: Sequence[bytes]) -> None:
    """Raise ``EngineOnlyError`` if one of ``events`` is of a kind that only the engine makes."""
    for number, raw in enumerate(events, start=1):
        kind = engine_kind_of(raw)
        if kind is not None:
            raise EngineOnlyError(f"event {number} of {len(events)} is a {kind}, which only the engine makes")
