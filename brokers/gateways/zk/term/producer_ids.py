"""The producer ids that were handed out, as ZooKeeper shows them.

The engine hands them out. But the brokers' own controller knows only what ZooKeeper says, and two producers with the
same id lose records: a broker takes the records of one for repeated records of the other.
"""

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Create, Set
from state.ids import PRODUCER_IDS_PER_BLOCK


def next_producer_id(session: Session) -> int:
    """Return the lowest producer id that was never handed out. Raises ``ZookeeperError`` or ``ZnodeError``."""
    return _next_in(session.read(znodes.PRODUCER_IDS))


def _next_in(held: tuple[bytes, int] | None) -> int:
    # Brokers make an empty one when they start.
    return 0 if held is None or not held[0] else znodes.next_producer_id_of(held[0])


def note_producer_ids(session: Session, controller: int, next_id: int) -> None:
    """Note in ZooKeeper that all ids below ``next_id`` are taken. Raises ``ZookeeperError`` or ``ZnodeError``."""
    held = session.read(znodes.PRODUCER_IDS)
    if next_id <= _next_in(held):
        return
    text = znodes.producer_ids_text(controller, max(0, next_id - PRODUCER_IDS_PER_BLOCK), next_id)
    session.write([Create(znodes.PRODUCER_IDS, text) if held is None else Set(znodes.PRODUCER_IDS, text)])
