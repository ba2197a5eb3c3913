"""The events that only the engine may publish."""

from state.events import ControllerStarted, LeaderImbalance, SessionsExtended, Tick

ENGINE_EVENTS = (ControllerStarted, LeaderImbalance, SessionsExtended, Tick)
ENGINE_KINDS = frozenset(str(kind.__struct_config__.tag) for kind in ENGINE_EVENTS)
