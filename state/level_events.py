"""What raises the level (``state.level``)."""

from state.event import AdminEvent
from state.limits import Level


class RaiseLevel(AdminEvent, frozen=True, kw_only=True, tag="raise_level"):
    """An operator raises the level, so that decisions, state and records of a newer release may be written."""

    level: Level
