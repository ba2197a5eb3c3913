"""When a broker was last heard, and what does not count as silence."""

from collections.abc import Iterable

from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.commit_cluster import commit_broker
from state.broker import Broker
from state.ids import NO_TIME


def with_contact(broker: Broker, now_ms: int) -> Broker:
    """Return a broker that has just sent a heartbeat."""
    return replace(broker, last_contact_ms=now_ms, connection_lost_ms=NO_TIME)


def grant_whole_session(batch: Batch, brokers: Iterable[Broker], in_ms: int = 0) -> None:
    """Give brokers a whole session that begins ``in_ms`` from now, unless they are heard before then."""
    for broker in brokers:
        last_contact_ms = max(broker.last_contact_ms, batch.state.now_ms + in_ms)
        commit_broker(batch, replace(broker, last_contact_ms=last_contact_ms, connection_lost_ms=NO_TIME))


def extend(batch: Batch, by_ms: int, brokers: Iterable[Broker]) -> None:
    """Shift each broker's last contact forward by ``by_ms``, at most to now."""
    for broker in list(brokers):
        lost_ms = broker.connection_lost_ms
        commit_broker(
            batch,
            replace(
                broker,
                last_contact_ms=max(broker.last_contact_ms, min(batch.state.now_ms, broker.last_contact_ms + by_ms)),
                connection_lost_ms=lost_ms if lost_ms == NO_TIME else min(batch.state.now_ms, lost_ms + by_ms),
            ),
        )
