"""A mirror where leaders write their ISRs into ZooKeeper themselves.

With an ``inter.broker.protocol.version`` below 2.7 a leader sets the znode of its partition, at the version that it
knows, and acts on its new ISR at once. So the version of the znode is not the partition epoch:

    partition epoch     decided     5          6          7
    version             of the znode     5  (6)  7          8
                                             └ written by the leader, and reported as an event, which became 6

Every write of the gateway also requires the version that it knows. If the leader wrote meanwhile, ZooKeeper refuses the
write. No broker has heard of that decision, and it is made again from what the leader wrote (``isr_written``).

The gateway writes the partition epoch into a field that brokers do not know. A broker's own write lacks the field.
"""

from collections.abc import Iterator

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.transactions import Set, Write
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.mirror.mirror import Mirror
from brokers.gateways.zk.mirror.stored import StoredState, StoredTopic
from brokers.gateways.zk.znodes import StateZnode
from state.decisions import LeaderAndIsr


class SharedMirror(Mirror):
    """What ZooKeeper holds where leaders write too. Partitions in ``held`` are not written."""

    def __init__(self) -> None:
        super().__init__()
        # The decided partition epoch that a znode holds.
        self._epochs: dict[Place, int | None] = {}
        self.held: set[Place] = set()

    def begin_with(self, view: ClusterView, topic: StoredTopic) -> dict[Place, StoredState]:
        """Compare a topic in ZooKeeper with what was decided, and return what its leaders wrote themselves."""
        known = view.topics.get(topic.name)
        if known is None or topic.is_new:
            return {}
        if known.topic_id != znodes.topic_of(znodes.topic_path(topic.name), topic.text).topic_id:
            return {}
        return {
            place: stored
            for number, stored in sorted(topic.states.items())
            if not self._is_known(view, place := Place(topic.name, number), stored)
        }

    def _is_known(self, view: ClusterView, place: Place, stored: StoredState) -> bool:
        decision, epoch = view.partition(place), stored.state.isrflow_partition_epoch
        if decision is None:
            return True
        if epoch is None and is_as_decided(decision, stored.state):
            epoch = decision.partition_epoch
        self.agreed(view, place, stored.version, epoch)
        return epoch is not None

    def is_news(self, place: Place, stored: StoredState) -> bool:
        """Return whether a leader wrote a partition's znode after the gateway did."""
        version = self._versions.get(place.topic, {}).get(place.partition)
        return version is not None and stored.version > version

    def agreed(self, view: ClusterView, place: Place, version: int, partition_epoch: int | None) -> None:
        """Note a znode's version, and the decided partition epoch that it holds; None if a leader wrote it itself."""
        self._versions.setdefault(place.topic, {})[place.partition] = version
        view.note_version(place, version)
        self._epochs[place] = partition_epoch

    def _partition(self, view: ClusterView, place: Place, controller_epoch: int) -> Iterator[Write]:
        decision = view.partition(place)
        assert decision is not None
        version = self._versions.get(place.topic, {}).get(place.partition)
        if place in self.held or (version is not None and self._epochs.get(place) == decision.partition_epoch):
            return
        text = znodes.state_text(decision, controller_epoch, is_marked=True)
        if version is None:
            yield from self._first(place, text)
            version = 0
        else:
            yield Set(znodes.state_path(place), text, version)
            version += 1
        self.agreed(view, place, version, decision.partition_epoch)


def is_as_decided(decision: LeaderAndIsr, state: StateZnode) -> bool:
    """Return whether a znode has the decided leader, leader epoch and ISR."""
    return (decision.leader, decision.leader_epoch, set(decision.isr)) == (
        state.leader,
        state.leader_epoch,
        set(state.isr),
    )
