"""Since when brokers do not serve."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from bus.interface import Bus
from cli.committed import Committed
from cli.duration import duration, second
from sinks.web.recall import Recall
from sinks.web.state_times import StateTimes
from state.broker import Broker
from state.ids import NO_TIME


class Away(NamedTuple):
    """A broker that does not serve. Times are by the engine's clock, and None if they are not known."""

    broker: int
    state: str
    since_ms: int | None
    # The reason of the decision that took it away.
    reason: str | None
    # When it was last heard.
    heard_ms: int | None
    now_ms: int

    @property
    def document(self) -> dict[str, Any]:
        """The fields as JSON shows them."""
        found = self._asdict()
        del found["now_ms"]
        return found

    @property
    def short(self) -> str:
        """How long the broker has been away, in few characters."""
        if self.since_ms is not None:
            return duration(self.now_ms - self.since_ms)
        return "-" if self.heard_ms is None else f"heard {duration(self.now_ms - self.heard_ms)} ago"

    @property
    def text(self) -> str:
        """Since when the broker has been away, to follow its state in a line."""
        if self.since_ms is not None:
            return f" for {duration(self.now_ms - self.since_ms)}, since {second(self.since_ms)} ({self.reason})"
        unknown = ", since when is not known"
        if self.heard_ms is None:
            return unknown
        return f"{unknown}; last heard {duration(self.now_ms - self.heard_ms)} ago, at {second(self.heard_ms)}"


def away_of(
    bus: Bus, found: Committed, state_times: StateTimes, brokers: Iterable[Broker] | None = None
) -> tuple[Away, ...]:
    """Find since when brokers do not serve, in ``state_times`` or on the bus. Raises ``BusError``."""
    looked_at = list(found.cluster.brokers.values() if brokers is None else brokers)
    state_times.seek(bus, looked_at, Recall(bus, lambda began_s: False))
    now_ms = found.cluster.clock_ms + max(0, round(found.age_s * 1000))
    gone = sorted((one for one in looked_at if not one.is_active), key=lambda one: one.broker)
    return tuple(_away(broker, state_times, now_ms) for broker in gone)


def _away(broker: Broker, state_times: StateTimes, now_ms: int) -> Away:
    since = state_times.of(broker)
    heard_ms = None if broker.last_contact_ms == NO_TIME else broker.last_contact_ms
    since_ms, reason = (None, None) if since is None else (since.time_ms, since.reason)
    return Away(broker.broker, broker.state.name, since_ms, reason, heard_ms, now_ms)
