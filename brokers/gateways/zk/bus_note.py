"""The note in ZooKeeper that says from which bus a cluster is led.

A gateway makes ZooKeeper hold what its bus says, and removes each topic that was led and that the bus does not know.
With the wrong bus, or a new and empty one, that would be every topic. So the first term notes the bus, in the
transaction that takes ``/controller``, and each later term begins only from the same bus.

    noted      the same bus             leads
               another bus              is refused
               the same bus, and a      is refused, because the bus does not know what was decided. It may have been
               broker led since         nothing (``taking``)
    not noted  no topic was led         notes the bus, and leads
               the bus knows one        the same, because an isrflow that wrote no note led it
               the bus knows none       is refused

A broker that led since has raised the controller epoch above the noted one.
Handing the cluster back removes the note, and taking it over notes the new bus.
"""

import msgspec

from brokers.gateways.zk import znodes
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.session import Session
from brokers.gateways.zk.transactions import Create, Delete, Set, Write
from brokers.gateways.zk.znodes import ZnodeError
from brokers.gateways.zk.zookeeper_errors import ZookeeperError


class OtherBusError(ZookeeperError):
    """The cluster cannot be led from this bus; the message says what to do."""


class _Note(msgspec.Struct):
    bus: int
    # That of the last gateway; an isrflow that wrote none may have been the last.
    controller_epoch: int | None = None
    # The transaction in which a broker became the controller, while it is not proven that it decided nothing.
    unproven_since: int | None = None
    # A broker has decided something.
    is_outdated: bool = False


def note_of(session: Session) -> tuple[_Note, int] | None:
    """Read the note, with its znode's version; None if there is none. Raises ``ZookeeperError`` or ``ZnodeError``."""
    held = session.read(znodes.BUS)
    return None if held is None else (_note_in(held[0]), held[1].version)


def noted(
    session: Session, bus_id: int, view: ClusterView, controller_epoch: int, *, unproven_since: int | None = None
) -> list[Write]:
    """Return the writes that note a bus, and the epoch that its gateway takes. ``view`` is what the bus says.

    While something is unproven, the note keeps the former epoch.

    Raises ``OtherBusError`` if the cluster must not be led from this bus, and ``ZookeeperError`` or ``ZnodeError``.
    """
    held = note_of(session)
    if held is None:
        _check_known(session, bus_id, view)
    elif held[0].bus == bus_id and unproven_since is not None:
        return [Set(znodes.BUS, text_of(bus_id, held[0].controller_epoch, unproven_since))]
    else:
        _check_same(session, held[0], bus_id)
    return [_written(session, znodes.BUS, text_of(bus_id, controller_epoch))]


def _check_same(session: Session, note: _Note, bus_id: int) -> None:
    if note.bus != bus_id:
        raise OtherBusError(
            f"this cluster is led from bus {note.bus}, and not from {bus_id} ({znodes.BUS}): use that bus, or hand the"
            " cluster back from it and take it over onto this one with --adopt"
        )
    if note.is_outdated:
        raise OtherBusError(
            f"a broker was the controller after the gateway of epoch {note.controller_epoch} ({znodes.BUS}), and has"
            " decided something since: take the cluster over onto an empty bus with --adopt"
        )
    if note.unproven_since is not None:
        raise OtherBusError(f"a gateway was killed while it took the place of a broker ({znodes.BUS}): start it again")
    held = session.read(znodes.CONTROLLER_EPOCH)
    if note.controller_epoch is None or held is None or session.read(znodes.CONTROLLER) is not None:
        # A place that is taken is a gateway's, and stays. So no broker has led since.
        return
    if (epoch := znodes.epoch_of(held[0])) > note.controller_epoch:
        raise OtherBusError(
            f"a broker was the controller of epoch {epoch} after the gateway of epoch {note.controller_epoch}"
            f" ({znodes.BUS}), and bus {bus_id} does not know what it decided: take the cluster over onto an empty bus"
            " with --adopt"
        )


def _check_known(session: Session, bus_id: int, view: ClusterView) -> None:
    led = 0
    for name in session.children(znodes.TOPICS):
        path = znodes.topic_path(name)
        held = session.read(path)
        if held is None:
            continue
        if name in view.topics and view.topics[name].topic_id == znodes.topic_of(path, held[0]).topic_id:
            return
        # Brokers write new topics, but only a controller makes ``partitions/``.
        led += session.read(f"{path}/partitions") is not None
    if led:
        raise OtherBusError(
            f"bus {bus_id} knows none of the {led} topics that were led in this cluster: use the bus from which they"
            f" were led. If it is this one, create {znodes.BUS} with the text {text_of(bus_id).decode()}"
        )


def noted_anew(session: Session, bus_id: int, controller_epoch: int) -> list[Write]:
    """Return the writes that note the bus onto which a cluster was taken over. Raises ``ZookeeperError``."""
    return [_written(session, znodes.BUS, text_of(bus_id, controller_epoch)), Delete(znodes.ADOPTION)]


def under_way(session: Session, bus_id: int) -> list[Write]:
    """Return the writes that note onto which bus the cluster is being taken over. Raises ``ZookeeperError``."""
    return [_written(session, znodes.ADOPTION, text_of(bus_id))]


def is_under_way(session: Session, bus_id: int) -> bool:
    """Say whether the cluster is being taken over onto this bus. Raises ``ZookeeperError``."""
    held = session.read(znodes.ADOPTION)
    # An isrflow that named no bus there may have begun on another one.
    return held is not None and held[0] == text_of(bus_id)


def prove(session: Session, bus_id: int, controller_epoch: int) -> None:
    """Note that the bus knows everything, and the epoch of its gateway. Raises ``ZookeeperError``."""
    session.write([Set(znodes.BUS, text_of(bus_id, controller_epoch))])


def outdated(bus_id: int, controller_epoch: int, version: int = -1) -> Write:
    """Return the write that notes that a broker has decided something, over the note at ``version``."""
    return Set(znodes.BUS, text_of(bus_id, controller_epoch, is_outdated=True), version)


def give_up(session: Session) -> None:
    """Delete ``/controller`` and what is isrflow's own, so that the brokers elect one of themselves.

    Raises ``ZookeeperError``.
    """
    own = [path for path in (znodes.ADOPTION, znodes.BUS, znodes.WRITES) if session.read(path) is not None]
    session.write([Delete(path) for path in (*own, znodes.CONTROLLER)])


def _written(session: Session, path: str, text: bytes) -> Write:
    return Set(path, text) if session.read(path) is not None else Create(path, text)


def _note_in(data: bytes) -> _Note:
    try:
        return msgspec.json.decode(data, type=_Note)
    except msgspec.MsgspecError as error:
        raise ZnodeError(f"{znodes.BUS}: {error}") from error


def text_of(
    bus_id: int,
    controller_epoch: int | None = None,
    unproven_since: int | None = None,
    *,
    is_outdated: bool = False,
) -> bytes:
    """Write a note of a bus."""
    values = {"version": 1, "bus": bus_id, "controller_epoch": controller_epoch, "unproven_since": unproven_since}
    found = {name: value for name, value in values.items() if value is not None}
    return msgspec.json.encode(found | ({"is_outdated": True} if is_outdated else {}))
