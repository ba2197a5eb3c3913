"""The cluster as decisions describe it: what a controller in ZooKeeper mode holds in its context."""

from collections.abc import Iterator
from typing import NamedTuple

from brokers.engine.committed_state import decisions_of
from bus.image import read_cluster
from bus.interface import Image
from state.decisions import AnyDecision, BrokerDecision, ConfigDecision, LeaderAndIsr, QuorumDecision, TopicDecision
from state.ids import NO_LEADER

# A broker in one of these states is told what is decided. A broker that may stop is live until its znode is gone.
_LIVE = ("active", "controlled_shutdown", "shutdown_allowed")


class Place(NamedTuple):
    """The name of a partition."""

    topic: str
    partition: int


class TopicView:
    """A topic with the newest decision about each of its partitions that ever had a leader."""

    def __init__(self, name: str, topic_id: str) -> None:
        self.name = name
        self.topic_id = topic_id
        self.state = "created"
        self.config: dict[str, str] = {}
        self.partitions: dict[int, LeaderAndIsr] = {}
        # How often a partition was added or the replicas of one changed.
        self.assignment_changes = 0

    def decided(self, decision: LeaderAndIsr) -> None:
        """Take in a decision about one of the partitions."""
        former = self.partitions.get(decision.partition)
        if former is None or _assignment(former) != _assignment(decision):
            self.assignment_changes += 1
        self.partitions[decision.partition] = decision

    @property
    def is_deleting(self) -> bool:
        """Whether brokers remove the topic. A deletion that waits for a reassignment is only announced."""
        return self.state in ("deleting", "ineligible") and not any(
            one.leader >= 0 or one.adding_replicas or one.removing_replicas for one in self.partitions.values()
        )


class ClusterView:
    """Brokers, topics, settings and the leading gateway, after the decisions so far. It does no I/O."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerDecision] = {}
        self.topics: dict[str, TopicView] = {}
        self._by_id: dict[str, TopicView] = {}
        self.configs: dict[tuple[str, str | None], dict[str, str]] = {}
        # The gateway that leads, and its incarnation.
        self.leader: tuple[int, str] | None = None
        self.quorum_epoch = 0
        self.controller_epoch = 0
        # By id, the topics that were deleted since this was last cleared. Brokers must still be told of them.
        self.removed: dict[str, TopicView] = {}
        # Deleted partitions that brokers may still know. A term that begins finds them in ZooKeeper.
        self.former: dict[Place, LeaderAndIsr] = {}
        # The versions of partitions' znodes, where brokers write them too.
        self.versions: dict[Place, int] = {}
        # By a broker's incarnation: its replicas in failed log directories, according to its own answers.
        self._lost: dict[str, set[Place]] = {}
        # How often something was taken in, and how often that may have changed which replicas are online. Whatever was
        # derived from the view is valid until one of the two rises.
        self.changes = 0
        self.online_changes = 0
        # The newest decision of a kind that ZooKeeper shows, or the one that the image ends with.
        self.newest: AnyDecision | None = None

    def begin_with(self, image: Image, newest: AnyDecision | None = None) -> None:
        """Take in the cluster as it was last committed. ``newest`` is a decision on the last event that led to any."""
        for decision in decisions_of(image):
            self.apply(decision)
        self.newest = newest
        quorum = read_cluster(image).quorum
        self.quorum_epoch = quorum.quorum_epoch
        if quorum.voter != NO_LEADER:
            self.leader = (quorum.voter, quorum.incarnation)

    def apply(self, decision: AnyDecision) -> None:
        """Take in one decision. Decisions must come in order."""
        self.controller_epoch = max(self.controller_epoch, decision.controller_epoch)
        self.changes += 1
        if isinstance(decision, LeaderAndIsr | TopicDecision | ConfigDecision):
            self.newest = decision
        match decision:
            case BrokerDecision(state="unregistered"):
                self.online_changes += 1
                self.brokers.pop(decision.broker, None)
            case BrokerDecision():
                self.online_changes += 1
                former = self.brokers.get(decision.broker)
                if former is not None and former.incarnation != decision.incarnation:
                    self._lost.pop(former.incarnation, None)
                self.brokers[decision.broker] = decision
            case TopicDecision(state="deleted"):
                if (removed := self.topics.pop(decision.topic, None)) is not None:
                    self.removed[removed.topic_id] = removed
                    self._by_id.pop(removed.topic_id, None)
            case TopicDecision():
                held = self._topic_of(decision.topic, decision.topic_id)
                held.state, held.config = decision.state, decision.config
            case LeaderAndIsr():
                # Within an event, the decisions about a new topic's partitions come before the one about the topic.
                self._topic_of(decision.topic, decision.topic_id).decided(decision)
            case ConfigDecision(entity="topic", name=str(name)) if name in self.topics:
                self.topics[name].config = decision.config
            case ConfigDecision():
                self.configs[decision.entity, decision.name] = decision.config
            case QuorumDecision():
                self.leader = (decision.voter, decision.incarnation)
                self.quorum_epoch = decision.quorum_epoch

    def _topic_of(self, name: str, topic_id: str) -> TopicView:
        held = self.topics.get(name)
        if held is None or held.topic_id != topic_id:
            if held is not None:
                self._by_id.pop(held.topic_id, None)
            held = self.topics[name] = self._by_id[topic_id] = TopicView(name, topic_id)
        return held

    @property
    def live(self) -> list[BrokerDecision]:
        """The brokers that are told what is decided, in order of id."""
        return [held for _, held in sorted(self.brokers.items()) if held.state in _LIVE]

    def decided_settings(self) -> dict[str, str]:
        """Return the cluster's settings that rules act on, as decided."""
        return self.configs.get(("cluster", None), {})

    def is_online(self, broker: int) -> bool:
        """Return whether a broker's replicas are online. While it shuts down they are not."""
        held = self.brokers.get(broker)
        return held is not None and held.state == "active"

    def has_online(self, broker: int, place: Place) -> bool:
        """Return whether a broker's replica of a partition is online. In a failed log directory it is not."""
        return self.is_online(broker) and place not in self._lost.get(self.brokers[broker].incarnation, ())

    def answered(self, incarnation: str, place: Place, *, is_lost: bool) -> None:
        """Note whether a broker said that its replica is in a failed log directory."""
        lost = self._lost.get(incarnation)
        if is_lost == (lost is not None and place in lost):
            return
        self.online_changes += 1
        if is_lost:
            self._lost.setdefault(incarnation, set()).add(place)
        elif lost is not None:
            lost.discard(place)

    def note_version(self, place: Place, version: int) -> None:
        """Note the version of a partition's znode."""
        self.versions[place] = version
        self.changes += 1

    def partition(self, place: Place) -> LeaderAndIsr | None:
        topic = self.topics.get(place.topic)
        return topic.partitions.get(place.partition) if topic else None

    def version(self, decision: LeaderAndIsr) -> int:
        """Return the version of a partition's znode, which is the partition epoch that brokers use."""
        return self.versions.get(Place(decision.topic, decision.partition), decision.partition_epoch)

    def topic_of_id(self, topic_id: str) -> TopicView | None:
        return self._by_id.get(topic_id)

    def places(self) -> Iterator[Place]:
        """Name every partition that ever had a leader, in order."""
        for name, topic in sorted(self.topics.items()):
            for number in sorted(topic.partitions):
                yield Place(name, number)

    def led_by(self, broker: int) -> list[Place]:
        """Name the partitions that a broker leads and that have other replicas."""
        return [
            Place(name, number)
            for name, topic in sorted(self.topics.items())
            for number, held in sorted(topic.partitions.items())
            if held.leader == broker and len(held.replicas) > 1
        ]


def _assignment(decision: LeaderAndIsr) -> tuple[tuple[int, ...], ...]:
    return decision.replicas, decision.adding_replicas, decision.removing_replicas
