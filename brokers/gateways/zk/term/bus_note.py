"""The note in ZooKeeper of the bus from which a cluster is led.

A gateway makes ZooKeeper hold what its bus says, and removes each topic that was led and that the bus does not know.
With the wrong bus, or a new and empty one, that would be every topic. So the first term notes the bus, in the
transaction that takes ``/controller``, and each later term begins only from the same bus.

    noted      the same bus             leads
               another bus              is refused
               the same bus, and a      is refused, unless the broker decided nothing (``taking``), because the bus
               broker led since         does not know its decisions
    not noted  no topic was led         notes the bus, and leads
               a topic was led          is refused, because the note was removed

A broker that led since has raised the controller epoch above the noted one.
Handing the cluster back removes the note, and taking it over notes the new bus.
"""

import msgspec

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Create, Delete, Set, Write
from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError


class OtherBusError(ZookeeperError):
    """The cluster cannot be led from this bus; the message says what to do."""


class _Note(msgspec.Struct):
    bus: int
    # The last gateway's; None if an operator wrote the note.
    controller_epoch: int | None = None
    # The transaction in which a broker became the controller, until it is proven that the broker decided nothing.
    unproven_since: int | None = None
    # Whether a broker has decided something.
    is_outdated: bool = False


def note_of(session: Session) -> tuple[_Note, int] | None:
    """Read the note, with its znode's version; None if there is none. Raises ``ZookeeperError`` or ``ZnodeError``."""
    held = session.read(znodes.BUS)
    return None if held is None else (znodes.read(znodes.BUS, held[0], _Note), held[1].version)


def noted(session: Session, bus_id: int, controller_epoch: int, *, unproven_since: int | None = None) -> list[Write]:
    """Return the writes that note a bus, and the epoch that its gateway takes.

    While something is unproven, the note keeps the former epoch.
    Raises ``OtherBusError`` if the cluster must not be led from this bus, and ``ZookeeperError`` or ``ZnodeError``.
    """
    held = note_of(session)
    if held is None:
        _check_not_led(session, bus_id)
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
        # A taken place is a gateway's, and stays. So no broker has led since.
        return
    if (epoch := znodes.epoch_of(held[0])) > note.controller_epoch:
        raise OtherBusError(
            f"a broker was the controller of epoch {epoch} after the gateway of epoch {note.controller_epoch}"
            f" ({znodes.BUS}), and bus {bus_id} does not know what it decided: take the cluster over onto an empty bus"
            " with --adopt"
        )


def _check_not_led(session: Session, bus_id: int) -> None:
    # Brokers write new topics, but only a controller makes ``partitions/``.
    paths = map(znodes.topic_path, session.children(znodes.TOPICS))
    led = sum(session.read(f"{path}/partitions") is not None for path in paths)
    if led:
        raise OtherBusError(
            f"{led} topics of this cluster were led, and {znodes.BUS} does not say from which bus. If it was bus"
            f" {bus_id}, create {znodes.BUS} with the text {text_of(bus_id).decode()}"
        )


def noted_anew(session: Session, bus_id: int, controller_epoch: int) -> list[Write]:
    """Return the writes that note the bus onto which a cluster was taken over. Raises ``ZookeeperError``."""
    return [_written(session, znodes.BUS, text_of(bus_id, controller_epoch)), Delete(znodes.ADOPTION)]


def under_way(session: Session, bus_id: int) -> list[Write]:
    """Return the writes that note onto which bus the cluster is being taken over. Raises ``ZookeeperError``."""
    return [_written(session, znodes.ADOPTION, text_of(bus_id))]


def is_under_way(session: Session, bus_id: int) -> bool:
    """Return whether the cluster is being taken over onto this bus. Raises ``ZookeeperError``."""
    held = session.read(znodes.ADOPTION)
    return held is not None and held[0] == text_of(bus_id)


def prove(session: Session, bus_id: int, controller_epoch: int) -> None:
    """Note that the bus knows everything, and the epoch of its gateway. Raises ``ZookeeperError``."""
    session.write([Set(znodes.BUS, text_of(bus_id, controller_epoch))])


def outdated(bus_id: int, controller_epoch: int, version: int = -1) -> Write:
    """Return the write that replaces the note at ``version``, because a broker has decided something."""
    return Set(znodes.BUS, text_of(bus_id, controller_epoch, is_outdated=True), version)


def give_up(session: Session) -> None:
    """Delete ``/controller`` and isrflow's own znodes, so that a broker takes the place. Raises ``ZookeeperError``."""
    own = [path for path in (znodes.ADOPTION, znodes.BUS, znodes.WRITES) if session.read(path) is not None]
    session.write([Delete(path) for path in (*own, znodes.CONTROLLER)])


def _written(session: Session, path: str, text: bytes) -> Write:
    return Set(path, text) if session.read(path) is not None else Create(path, text)


def text_of(
    bus_id: int, controller_epoch: int | None = None, unproven_since: int | None = None, *, is_outdated: bool = False
) -> bytes:
    """Write a note of a bus."""
    values = {"version": 1, "bus": bus_id, "controller_epoch": controller_epoch, "unproven_since": unproven_since}
    found = {name: value for name, value in values.items() if value is not None}
    return msgspec.json.encode(found | ({"is_outdated": True} if is_outdated else {}))
