"""The writes with which ZooKeeper shows Kafka's brokers and tools what was decided.

The version of a partition's znode is the partition epoch that brokers use. Each write raises it by one, so a partition
whose decisions were skipped is written once for each of them.

A term may end after any transaction, and the next term goes on from there:

    created   settings | topic and its partitions/ | a directory | its state | the next directory | ...
    removed   settings | a state | its directory | ... | partitions/ and the topic

A topic that a gateway wrote always has ``partitions/`` below it. Brokers make topics too, but never ``partitions/``.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.transactions import Create, Delete, Set, Write
from brokers.gateways.zk.cluster_view import ClusterView, Place
from state.decisions import AnyDecision, ConfigDecision, LeaderAndIsr, TopicDecision

# The topics that changed, each with its partitions that did; None for all of them.
Changes = Mapping[str, Collection[int] | None]


class MirrorError(Exception):
    """ZooKeeper holds something that the engine never decided; the message names it."""


class Mirror:
    """What ZooKeeper holds once the planned writes are made. The caller makes them in the order of ``writes``."""

    def __init__(self) -> None:
        # The version of each partition's state, the text of each topic, and its settings: None if they are unknown.
        self._versions: dict[str, dict[int, int]] = {}
        self._topics: dict[str, bytes] = {}
        self._configs: dict[str, dict[str, str] | None] = {}
        # By topic that has ``partitions/``: the partitions that have a directory, with or without a state in it.
        self._directories: dict[str, set[int]] = {}
        # Topics with decisions that were not written, because the topic was being deleted. The deletion waits again if
        # a partition gets a leader.
        self._held_back: set[str] = set()
        # The id of each topic whose text has the present assignment, and after how many changes of the assignment.
        self._assigned: dict[str, tuple[str, int]] = {}

    def found(
        self,
        topic: str,
        text: bytes,
        config: dict[str, str] | None,
        versions: dict[int, int],
        directories: Collection[int] | None = None,
    ) -> None:
        """Note what ZooKeeper holds of a topic: its text, its settings, and the versions of its partitions' states.

        ``directories`` are the partitions that have one, None if the topic has no ``partitions/``.
        """
        self._topics[topic] = text
        self._assigned.pop(topic, None)
        self._configs.pop(topic, None)
        if config is not None:
            self._configs[topic] = config
        self._versions[topic] = dict(versions)
        self._directories.pop(topic, None)
        if directories is not None or versions:
            self._directories[topic] = {*(directories or ()), *versions}

    def found_settings(self, topic: str) -> None:
        """Note that ZooKeeper holds settings of a topic, whatever they are.

        Settings without a topic are never removed, because a broker writes them before the topic.
        """
        self._configs[topic] = None

    def text(self, topic: str) -> bytes:
        """Return the text that ZooKeeper holds of a topic."""
        return self._topics[topic]

    def config(self, topic: str) -> dict[str, str] | None:
        """Return the settings that ZooKeeper holds, once the writes that were planned are made."""
        return self._configs.get(topic)

    def config_found(self, topic: str, config: dict[str, str]) -> None:
        """Note the settings that a broker wrote for a topic."""
        self._configs[topic] = config

    def forget(self, topic: str) -> None:
        """Note that a topic without ``partitions/`` is no longer in ZooKeeper."""
        self._topics.pop(topic, None)
        self._assigned.pop(topic, None)
        self._configs.pop(topic, None)

    def strangers(self, view: ClusterView) -> list[str]:
        """Name the new topics that brokers wrote, and that the engine does not know."""
        return sorted(name for name in self._topics if name not in view.topics and name not in self._directories)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that ZooKeeper holds."""
        return frozenset(self._topics)

    def writes(self, view: ClusterView, changes: Changes, controller_epoch: int) -> Iterator[Write]:
        """Yield the writes that make ZooKeeper hold what is decided about topics. Raises ``MirrorError``."""
        for name, changed in changes.items():
            topic = view.topics.get(name)
            if topic is None or self._is_another(view, name):
                yield from self._removed(name)
            if topic is None:
                self._held_back.discard(name)
            elif topic.is_deleting:
                self._held_back.add(name)
            else:
                is_whole = name not in self._versions or name in self._held_back
                self._held_back.discard(name)
                yield from self._topic(view, name)
                numbers = topic.partitions if changed is None or is_whole else topic.partitions.keys() & changed
                for number in sorted(numbers):
                    yield from self._partition(view, Place(name, number), controller_epoch)

    def _is_another(self, view: ClusterView, name: str) -> bool:
        """Return whether ZooKeeper holds a former topic of this name."""
        held = self._topics.get(name)
        if held is None or name not in self._directories:
            return False
        known = self._assigned.get(name)
        topic_id = known[0] if known else znodes.topic_of(znodes.topic_path(name), held).topic_id
        return topic_id != view.topics[name].topic_id

    def _removed(self, name: str) -> Iterator[Write]:
        held = self._topics.pop(name, None)
        if held is None:
            return
        # Kafka also removes whatever is below a topic.
        gone = partial(Delete, whole=True)
        # Settings go first, because settings without a topic are never removed (``found_settings``).
        if name in self._configs:
            del self._configs[name]
            yield gone(f"{znodes.TOPIC_CONFIGS}/{name}")
        path = znodes.topic_path(name)
        self._assigned.pop(name, None)
        versions, directories = self._versions.pop(name, {}), self._directories.pop(name, None)
        for partition in sorted(directories or ()):
            state = znodes.state_path(Place(name, partition))
            if partition in versions:
                yield gone(state)
            yield gone(state.rpartition("/")[0])
        if directories is not None:
            yield gone(f"{path}/partitions")
        # Without ``partitions/`` the topic would look like a new one that a broker wrote.
        yield gone(path, joined=directories is not None)

    def _topic(self, view: ClusterView, name: str) -> Iterator[Write]:
        # A broker reads the settings of a topic when it makes a log, so they come first.
        topic = view.topics[name]
        if self._configs.get(name) != topic.config:
            config = znodes.config_text(topic.config)
            path = f"{znodes.TOPIC_CONFIGS}/{name}"
            is_known = name in self._configs
            yield Set(path, config) if is_known else Create(path, config)
            self._configs[name] = topic.config
            if is_known:
                # Brokers read settings again only if a note says so.
                yield Create(znodes.CONFIG_CHANGE, znodes.config_change_text(name), sequence=True, joined=True)
        path, is_written = znodes.topic_path(name), False
        # Writing the text of a large topic takes long, and most changes are about leaders and ISRs.
        if self._assigned.get(name) != (topic.topic_id, topic.assignment_changes):
            text = znodes.topic_text(topic)
            is_written = self._topics.get(name) != text
            if is_written:
                yield Set(path, text) if name in self._topics else Create(path, text)
                self._topics[name] = text
            self._assigned[name] = (topic.topic_id, topic.assignment_changes)
        if name not in self._directories:
            yield Create(f"{path}/partitions", b"", joined=is_written)
            self._directories[name] = set()

    def _partition(self, view: ClusterView, place: Place, controller_epoch: int) -> Iterator[Write]:
        decision = view.partition(place)
        assert decision is not None
        versions = self._versions.setdefault(place.topic, {})
        version = versions.get(place.partition)
        if version == decision.partition_epoch:
            return
        path = znodes.state_path(place)
        text = znodes.state_text(decision, controller_epoch)
        if version is None:
            yield from self._first(place, text)
            version = 0
        if version > decision.partition_epoch:
            raise MirrorError(
                f"{path} is at version {version}, and the engine decided {decision.partition_epoch}:"
                " another controller has written it"
            )
        for _ in range(decision.partition_epoch - version):
            yield Set(path, text)
        versions[place.partition] = decision.partition_epoch

    def _first(self, place: Place, text: bytes) -> Iterator[Write]:
        """Yield the writes that create a partition's znode, at version 0."""
        path = znodes.state_path(place)
        directories = self._directories[place.topic]
        if place.partition not in directories:
            yield Create(path.rpartition("/")[0], b"")
            directories.add(place.partition)
        yield Create(path, text)


def changes_in(decisions: Iterable[AnyDecision]) -> Changes:
    """Return the topics that decisions change, in the order in which the decisions first name them."""
    changes: dict[str, set[int] | None] = {}
    for decision in decisions:
        match decision:
            case LeaderAndIsr():
                partitions = changes.setdefault(decision.topic, set())
                if partitions is not None:
                    partitions.add(decision.partition)
            case TopicDecision():
                changes[decision.topic] = None
            case ConfigDecision(entity="topic", name=str(name)):
                changes.setdefault(name, set())
    return changes
