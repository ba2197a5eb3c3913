"""Since when brokers are in the states that they are in.

The state does not have it, so it is found among new decisions and those on the bus. It stays unknown if retention has
removed the decision, or if too many came since.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from bus.interface import AFTER_ALL_OF, Bus
from sinks.web.recall import PART_BYTES, PART_DECISIONS, PARTS_MAX, Recall
from sinks.web.seen import Seen, seen
from state.broker import Broker, BrokerState
from state.ids import NO_TIME
from state.reason import Reason

# Decisions on a broker that change something other than its state.
_SAME_STATE = frozenset({Reason.LOG_DIR_FAILED, Reason.LOG_DIR_ASSIGNED, Reason.LOG_DIRS_CORDONED})
# A silent broker is fenced when its session has ended, so soon after it was last heard.
_WITHIN_MS = 600_000
# How far the engine's clock may be from the clock by which the bus finds an event.
_SLACK_MS = 60_000


class Since(NamedTuple):
    """Since when a broker is in a state."""

    state: str
    # By the engine's clock.
    time_ms: int
    reason: str


class StateTimes:
    """Since when each broker is in its state, as far as it is known."""

    def __init__(self) -> None:
        self._since: dict[int, Since] = {}
        # For which broker epoch and state a broker was searched, so that each search is done once.
        self._sought: dict[int, tuple[int, BrokerState]] = {}

    def add(self, one: Seen) -> None:
        """Take in a decision. It must be later than those taken in before."""
        if one.kind != "broker" or one.broker is None or one.reason in _SAME_STATE:
            return
        held = self._since.get(one.broker)
        if held is None or held.state != _state_in(one):
            self._since[one.broker] = Since(_state_in(one), one.time_ms, one.reason)

    def of(self, broker: Broker) -> Since | None:
        """Return since when a broker is in its state; None if that is not known."""
        held = self._since.get(broker.broker)
        return held if held is not None and held.state == broker.state.name else None

    def seek(self, bus: Bus, brokers: Iterable[Broker], recall: Recall | None = None) -> None:
        """Search the bus for what is not known of brokers that are not active. Raises ``BusError``.

        ``recall`` reads the newest decisions if need be, for a caller that does not take them in anyway.
        """
        wanted = [broker for broker in brokers if self._is_wanted(broker)]
        for number, since in _after_contact(bus, wanted):
            self._since[number] = since
        if recall is not None and any(self.of(broker) is None for broker in wanted):
            for one, _ in recall.newest(0, bus.decided_seq()):
                self.add(one)
        for broker in wanted:
            self._sought[broker.broker] = (broker.broker_epoch, broker.state)

    def _is_wanted(self, broker: Broker) -> bool:
        if broker.is_active:
            self._sought.pop(broker.broker, None)
            if self.of(broker) is None:
                self._since.pop(broker.broker, None)
            return False
        return self.of(broker) is None and self._sought.get(broker.broker) != (broker.broker_epoch, broker.state)


def _after_contact(bus: Bus, brokers: Iterable[Broker]) -> Iterator[tuple[int, Since]]:
    """Search for each broker forwards from when it was last heard."""
    left = sorted((one for one in brokers if one.last_contact_ms != NO_TIME), key=lambda one: one.last_contact_ms)
    place = (0, AFTER_ALL_OF)
    for _ in range(PARTS_MAX):
        if not left:
            return
        place = max(place, (bus.seq_at(left[0].last_contact_ms - _SLACK_MS), AFTER_ALL_OF))
        page = bus.decisions(place, PART_DECISIONS, PART_BYTES, passing_over=True)
        if not page:
            return
        place = (page[-1].seq, page[-1].idx)
        read = [one for one, _ in seen(page)]
        found = _found(read, {broker.broker: broker for broker in left})
        yield from found.items()
        through_ms = read[-1].time_ms if read else 0
        left = [one for one in left if one.broker not in found and through_ms <= one.last_contact_ms + _WITHIN_MS]


def _found(read: Iterable[Seen], brokers: dict[int, Broker]) -> dict[int, Since]:
    """Return since when brokers are in their states, of those whose decision is in this part."""
    found: dict[int, Since] = {}
    for one in read:
        broker = brokers.get(one.broker) if one.kind == "broker" and one.broker is not None else None
        if broker is None or one.time_ms < broker.last_contact_ms or one.reason in _SAME_STATE:
            continue
        if _state_in(one) != broker.state.name:
            # It may change more than once in the millisecond in which it was last heard.
            found.pop(broker.broker, None)
        elif broker.broker not in found:
            found[broker.broker] = Since(_state_in(one), one.time_ms, one.reason)
    return found


def _state_in(one: Seen) -> str:
    """Return the state that a broker is in after a decision. One that leads nothing may stop at once."""
    allowed, shutting_down = BrokerState.shutdown_allowed.name, BrokerState.controlled_shutdown.name
    return shutting_down if one.state == allowed else one.state
