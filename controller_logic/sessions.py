"""When a broker was last heard, and what does not count as its silence."""

from collections.abc import Iterable

from msgspec.structs import replace

from controller_logic.draft import Draft
from state.broker import Broker
from state.ids import NO_TIME


def heard(broker: Broker, now_ms: int) -> Broker:
    """Return a broker that has just sent a heartbeat."""
    return replace(broker, last_contact_ms=now_ms, connection_lost_ms=NO_TIME)


def begin_anew(draft: Draft, brokers: Iterable[Broker], in_ms: int = 0) -> None:
    """Give brokers a whole session, which begins ``in_ms`` from now unless they are heard before."""
    for broker in brokers:
        last_contact_ms = max(broker.last_contact_ms, draft.now + in_ms)
        draft.put_broker(replace(broker, last_contact_ms=last_contact_ms, connection_lost_ms=NO_TIME))


def extend(draft: Draft, by_ms: int, brokers: Iterable[Broker]) -> None:
    """Let brokers have been heard ``by_ms`` later than they were, but not later than now."""
    for broker in list(brokers):
        lost_ms = broker.connection_lost_ms
        draft.put_broker(
            replace(
                broker,
                last_contact_ms=max(broker.last_contact_ms, min(draft.now, broker.last_contact_ms + by_ms)),
                connection_lost_ms=lost_ms if lost_ms == NO_TIME else min(draft.now, lost_ms + by_ms),
            )
        )
