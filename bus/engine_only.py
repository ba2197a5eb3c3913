"""The events that only the engine may publish, by kind."""

from isrflow.engine_only import engine_kind_of as engine_kind_of
from isrflow.engine_only import refuse_engine_kinds as refuse_engine_kinds
from state.events import ControllerStarted, Tick

_STARTED = str(ControllerStarted.__struct_config__.tag)
_TICK = str(Tick.__struct_config__.tag)


def is_started(raw: bytes) -> bool:
    """Return whether an event is a ``controller_started``."""
    return engine_kind_of(raw) == _STARTED


def is_tick(raw: bytes) -> bool:
    """Return whether an event is a ``tick``."""
    return engine_kind_of(raw) == _TICK
