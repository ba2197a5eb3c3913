"""The events that only the engine may publish."""

from state.events import ControllerStarted, LeaderImbalance, SessionsExtended, Tick

ENGINE_EVENTS = (ControllerStarted, LeaderImbalance, SessionsExtended, Tick)
