"""How a gateway takes ``/controller``: a free place, another gateway's, or back from a broker that was quicker.

When ``/controller`` is removed, brokers compete for it with the gateway that leads, and a broker may win. It then has
an epoch that no gateway took, and the bus does not know its decisions. But ZooKeeper holds a controller's decision
before any broker hears of it. As long as nothing in ZooKeeper is newer than the broker's epoch, the bus knows
everything, and the gateway may go on.

    look        something is newer: the broker keeps the place. The note says so, and no further term begins
    take        the broker can no longer write any partition. The note (``bus_note``) says that nothing is proven yet
    look again  something is newer: the place is given back, with the same note
    note        the new epoch

A gateway that is killed after it took the place leaves the unproven note, so the next gateway looks first.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import structlog

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Delete
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.settings import Identity
from brokers.gateways.zk.term.bus_note import OtherBusError, note_of, noted, outdated, prove
from bus.clock import now_ms

logger = structlog.get_logger()


class Former(NamedTuple):
    """The last gateway: its epoch, the version of its note, and the transaction in which a broker took its place."""

    epoch: int
    version: int
    ended: int


def take_place(session: Session, identity: Identity, bus_id: int, view: ClusterView) -> int:
    """Take ``/controller``, and return the new controller epoch.

    Raises ``OtherBusError``, ``ZookeeperError`` or ``ZnodeError``.
    """
    former = _former(session, identity, bus_id)
    if former is not None:
        try:
            _check_unchanged(session, former.ended)
        except OtherBusError:
            # Refused if a gateway has taken the place and written the note meanwhile.
            session.write([outdated(bus_id, former.epoch, former.version)])
            raise
    epoch = session.take(
        identity.gateway,
        identity.gateways,
        view.controller_epoch,
        now_ms(),
        from_brokers=former is not None,
        notes=partial(noted, session, bus_id, unproven_since=None if former is None else former.ended),
    )
    if former is not None:
        try:
            _check_unchanged(session, former.ended)
        except OtherBusError:
            session.write([outdated(bus_id, former.epoch), Delete(znodes.CONTROLLER)])
            raise
        prove(session, bus_id, epoch)
        logger.warning("took the place back from a broker that had decided nothing", controller_epoch=epoch)
    return epoch


def _former(session: Session, identity: Identity, bus_id: int) -> Former | None:
    """Return the last gateway on this bus if a broker took its place and may have decided nothing since."""
    found, held = note_of(session), session.read(znodes.CONTROLLER_EPOCH)
    if found is None or held is None:
        return None
    note, version = found
    if note.bus != bus_id or note.is_outdated or note.controller_epoch is None:
        return None
    if note.unproven_since is not None:
        return Former(note.controller_epoch, version, note.unproven_since)
    if znodes.epoch_of(held[0]) != note.controller_epoch + 1 or session.former_controller() in identity.gateways:
        return None
    return Former(note.controller_epoch, version, held[1].mzxid)


def _check_unchanged(session: Session, since: int) -> None:
    for path, zxid in _written(session):
        if zxid > since:
            raise OtherBusError(
                f"a broker was the controller after this bus led, and {path} has changed since: take the cluster over"
                " onto an empty bus with --adopt"
            )


def _written(session: Session) -> Iterator[tuple[str, int]]:
    """Yield the znodes that controllers write, each with the transaction that wrote it last."""
    held = session.read(znodes.TOPICS)
    if held is not None:
        yield znodes.TOPICS, held[1].pzxid
    topics = list(map(znodes.topic_path, session.children(znodes.TOPICS)))
    partitions = session.children_of_each(f"{path}/partitions" for path in topics)
    states = [f"{path}/partitions/{one}/state" for path, found in zip(topics, partitions, strict=True) for one in found]
    paths = [*topics, *states]
    for path, found in zip(paths, session.read_each(paths), strict=True):
        if found is not None:
            yield path, found[1].mzxid
