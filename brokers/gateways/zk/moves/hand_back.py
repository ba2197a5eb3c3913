"""The way back: a cluster is left to its own brokers, one of which then becomes its controller.

ZooKeeper gets everything that was decided, even what only the bus had: the next producer ids, and the topics whose
deletion is under way. Then the controller's place is given up. A broker takes it, and finds a cluster like any other.
Nothing may be decided meanwhile, so the engine and the gateways are stopped first.
"""

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Create, Write
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.mirror.mirror import Mirror, MirrorError
from brokers.gateways.zk.mirror.shared_mirror import SharedMirror
from brokers.gateways.zk.mirror.stored import load
from brokers.gateways.zk.settings import Settings
from brokers.gateways.zk.term.bus_note import give_up, noted
from brokers.gateways.zk.term.producer_ids import next_producer_id, note_producer_ids
from brokers.gateways.zk.term.written_decision import check_has_written, noted_in
from brokers.gateways.zk.znodes import ZnodeError
from bus.clock import now_ms
from bus.image import HeldState, read_image
from bus.interface import Bus, Image
from state.ids import NO_LEADER
from state.partition import Topic, TopicState


class HandBackError(Exception):
    """The cluster cannot be handed back; the message says why. Nothing has changed."""


def hand_back(zookeeper: str, cluster_id: str, settings: Settings, bus: Bus, gateways: Collection[int] = ()) -> bool:
    """Complete ZooKeeper from the bus, and give up the controller's place. Return False if it was not a gateway's.

    ``gateways`` are the ids of this cluster's gateways. The bus knows none of them if the only one that ran was killed
    while it took the cluster over, or just afterwards.

    Raises ``HandBackError``, ``ZookeeperError`` or ``BusError``.
    """
    image = bus.image()
    held, view = read_image(image), _view_of(image)
    session = Session(zookeeper, settings.zookeeper_session_timeout_ms, lambda path: None, lambda why: None)
    session.open(settings.zookeeper_connection_timeout_ms)
    try:
        session.check_cluster(cluster_id)
        check_has_written(bus, noted_in(session))
        notes = partial(noted, session, bus.bus_id())
        check = partial(_check, session, image, held, leaders_write_isrs=settings.leaders_write_isrs)
        quorum = held.cluster.quorum
        ids = frozenset({quorum.voter, *quorum.voters, *gateways}) - {NO_LEADER}
        return _handed_back(session, view, held, ids, notes, check, leaders_write_isrs=settings.leaders_write_isrs)
    except (ZnodeError, MirrorError) as error:
        raise HandBackError(str(error)) from error
    finally:
        session.close()


def _handed_back(
    session: Session,
    view: ClusterView,
    held: HeldState,
    gateways: frozenset[int],
    notes: Callable[[int], Sequence[Write]],
    check: Callable[[], None],
    *,
    leaders_write_isrs: bool,
) -> bool:
    voter = held.cluster.quorum.voter
    former = session.former_controller()
    if former is not None and former not in gateways:
        return False
    # If this process is killed while it has the place, the next attempt recognises it as a gateway's.
    controller = former if voter == NO_LEADER else voter
    if controller is None:
        raise HandBackError("no gateway has led brokers by this bus")
    is_adopted = session.read(znodes.ADOPTION) is None
    if is_adopted:
        check()
    # The place may be free, because no gateway runs. It is taken only for the last writes.
    epoch = session.take(
        controller,
        gateways,
        view.controller_epoch,
        now_ms(),
        adopting=not is_adopted,
        notes=notes if is_adopted else lambda epoch: (),
    )
    if is_adopted:
        # Read again, because a server of ZooKeeper that lags behind may not have shown a gateway's newest writes.
        mirror = _loaded(session, view, leaders_write_isrs=leaders_write_isrs)
        queued = session.children(znodes.DELETE_TOPICS)
        session.write(list(last_writes(view, held.topics, mirror, queued, epoch)))
        note_producer_ids(session, controller, held.cluster.next_producer_id)
        for name in _made_for_gateways(mirror, view, gateways):
            session.remove(znodes.topic_path(name))
    # If its take-over did not end, ZooKeeper has the cluster as its own controller left it.
    give_up(session)
    return True


def _view_of(image: Image) -> ClusterView:
    view = ClusterView()
    view.begin_with(image)
    return view


def _check(session: Session, image: Image, held: HeldState, *, leaders_write_isrs: bool) -> None:
    """Raise the error that would stop the last writes, while nothing has changed yet."""
    # A view of its own, because loading adds to it what leaders wrote.
    view = _view_of(image)
    mirror = _loaded(session, view, leaders_write_isrs=leaders_write_isrs)
    for _ in last_writes(view, held.topics, mirror, (), view.controller_epoch):
        pass
    next_producer_id(session)


def _loaded(session: Session, view: ClusterView, *, leaders_write_isrs: bool) -> Mirror:
    """Note what ZooKeeper holds. An ISR that a leader wrote, unknown to the engine, stays: the leader uses it."""
    if not leaders_write_isrs:
        mirror = Mirror()
        list(load(session, mirror))
        return mirror
    shared = SharedMirror()
    for topic in load(session, shared):
        for place, stored in shared.begin_with(view, topic).items():
            shared.held.add(place)
            _assign_again(view, place, stored.state.isr)
    return shared


def _assign_again(view: ClusterView, place: Place, isr: tuple[int, ...]) -> None:
    """Add members of a written ISR that a reassignment removed, as replicas that are yet to be removed."""
    held = view.topics[place.topic].partitions[place.partition]
    removed = tuple([member for member in isr if member not in held.replicas])
    view.topics[place.topic].partitions[place.partition] = replace(
        held, replicas=held.replicas + removed, removing_replicas=tuple(held.removing_replicas) + removed
    )


def last_writes(
    view: ClusterView, topics: Collection[Topic], mirror: Mirror, queued: Collection[str], epoch: int
) -> Iterator[Write]:
    """Yield the writes after which ZooKeeper holds everything. ``queued`` are the topics that it lists for deletion.

    Nothing is removed. A topic that was deleted while no gateway led is listed too, because brokers may have its logs.
    """
    strangers = set(mirror.strangers(view))
    gone = {name for name in mirror.topics if name not in view.topics and name not in strangers}
    going = {topic.topic for topic in topics if topic.deletion_waits or topic.state != TopicState.created}
    yield from mirror.writes(view, dict.fromkeys(sorted(view.topics)), epoch)
    for name in sorted(gone | (going & mirror.topics)):
        if name not in queued:
            yield Create(f"{znodes.DELETE_TOPICS}/{name}", b"")


def _made_for_gateways(mirror: Mirror, view: ClusterView, gateways: frozenset[int]) -> list[str]:
    """Name the new topics that a broker assigned to a gateway. The broker will make them again without it."""
    found = []
    for name in mirror.strangers(view):
        # An unreadable topic stays. Brokers leave it alone.
        with contextlib.suppress(ZnodeError):
            assigned = znodes.topic_of(znodes.topic_path(name), mirror.text(name)).partitions.values()
            if any(gateways.intersection(replicas) for replicas in assigned):
                found.append(name)
    return found
