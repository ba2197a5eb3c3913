"""What a broker knows of the cluster: brokers, topics and leaders, from the decisions that it has heard."""

from collections.abc import Iterator

from msgspec.structs import replace

from state.decisions import (
    AnyDecision,
    BrokerDecision,
    ConfigDecision,
    HighWatermark,
    LeaderAndIsr,
    LevelDecision,
    TopicDecision,
)
from state.events import TopicPartition
from state.level import FIRST_LEVEL
from state.registration import Listener

LIVE_STATES = frozenset({"active", "controlled_shutdown"})


class Metadata:
    """The newest decision on each broker, topic, partition and configuration."""

    def __init__(self) -> None:
        self.brokers: dict[int, BrokerDecision] = {}
        self.topics: dict[str, TopicDecision] = {}
        self.partitions: dict[str, dict[int, LeaderAndIsr]] = {}
        self.controller_epoch = 0
        # What the bus may carry (``state.level``).
        self.level = FIRST_LEVEL
        self._names: dict[str, str] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._config: dict[str, str] = {}

    def apply(self, decision: AnyDecision) -> None:
        """Apply the next decision."""
        match decision:
            case LeaderAndIsr():
                self._partition(decision)
            case HighWatermark():
                place = TopicPartition(decision.topic, decision.partition)
                self._high_watermarks[place] = decision.high_watermark
            case TopicDecision():
                self._topic(decision)
            case BrokerDecision():
                self._broker(decision)
            case LevelDecision():
                self.level = decision.level
            case ConfigDecision(entity="cluster"):
                self._config = decision.config
            case ConfigDecision(entity="topic") if (topic := self.topics.get(decision.name or "")) is not None:
                self.topics[topic.topic] = replace(topic, config=decision.config)
        self.controller_epoch = max(self.controller_epoch, decision.controller_epoch)

    def _partition(self, decision: LeaderAndIsr) -> None:
        known = self.partitions.setdefault(decision.topic, {})
        before = known.get(decision.partition)
        if before is not None and before.topic_id == decision.topic_id and _epochs(decision) < _epochs(before):
            return
        known[decision.partition] = decision

    def _topic(self, decision: TopicDecision) -> None:
        before = self.topics.get(decision.topic)
        if before is not None and before.topic_id != decision.topic_id:
            self._forget(before)
        if decision.state == "deleted":
            self._forget(decision)
            return
        self.topics[decision.topic] = decision
        self._names[decision.topic_id] = decision.topic

    def _forget(self, topic: TopicDecision) -> None:
        known = self.partitions.get(topic.topic, {})
        # If the topic was created again, decisions on its new partitions may have come first. These partitions stay.
        gone = [partition for partition, decision in known.items() if decision.topic_id == topic.topic_id]
        for partition in gone:
            del known[partition]
            self._high_watermarks.pop(TopicPartition(topic.topic, partition), None)
        if not known:
            self.partitions.pop(topic.topic, None)
        self._names.pop(topic.topic_id, None)
        if (held := self.topics.get(topic.topic)) is not None and held.topic_id == topic.topic_id:
            del self.topics[topic.topic]

    def _broker(self, decision: BrokerDecision) -> None:
        if decision.state == "unregistered":
            self.brokers.pop(decision.broker, None)
        elif decision.state != "shutdown_allowed":  # a message to the broker, and not its state
            self.brokers[decision.broker] = decision

    def topic_of(self, topic_id: str) -> str | None:
        """Return the name of the topic with this id (KIP-516)."""
        return self._names.get(topic_id)

    def partition(self, place: TopicPartition) -> LeaderAndIsr | None:
        return self.partitions.get(place.topic, {}).get(place.partition)

    def all_partitions(self) -> Iterator[LeaderAndIsr]:
        for known in self.partitions.values():
            yield from known.values()

    def high_watermark(self, place: TopicPartition) -> int:
        """Return the last decided high watermark, whatever its leader epoch.

        A new leader limits it to its own log end. After a clean election that changes nothing, because the leader holds
        all records below it. After an unclean election, perhaps no broker does.
        """
        return self._high_watermarks.get(place, 0)

    def live(self, broker: int) -> BrokerDecision | None:
        """Return the broker if it serves requests, as it does even during its controlled shutdown."""
        known = self.brokers.get(broker)
        return known if known is not None and known.state in LIVE_STATES else None

    def endpoint(self, broker: int) -> Listener | None:
        """Return where a broker listens, alive or not. Its first listener serves all clients."""
        known = self.brokers.get(broker)
        return known.listeners[0] if known is not None and known.listeners else None

    def topic_setting(self, topic: str, name: str, of_brokers: str) -> str | None:
        """Return a topic's own setting, or else that of all brokers, which has the name ``of_brokers``."""
        known = self.topics.get(topic)
        return (known.config.get(name) if known is not None else None) or self._config.get(of_brokers)


def _epochs(decision: LeaderAndIsr) -> tuple[int, int]:
    return decision.leader_epoch, decision.partition_epoch
