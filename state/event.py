"""What every event has, and what those of admins have besides."""

from typing import Annotated

import msgspec
from msgspec import Meta

from state.limits import Epoch, Text, TimeMs


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """Hold what every event has; ``request_id`` is echoed in the answer."""

    time_ms: TimeMs
    request_id: Text | int | None = None


class AdminEvent(Event, frozen=True, kw_only=True):
    """What an admin asks; once ``timeout_ms`` is over since it came, it is answered so, and not done any more."""

    timeout_ms: Annotated[int, Meta(ge=0, le=86_400_000)] | None = None


class EngineEvent(Event, frozen=True, kw_only=True):
    """What only the engine makes, and in which controller epoch."""

    controller_epoch: Epoch | None = None
