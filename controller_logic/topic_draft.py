"""A topic while a batch of events is worked into it."""

from collections import Counter

from state.partition import Partition, ReplicaState, Topic, TopicState
from state.policy import TOPIC_NAMES, Policy, laid_over

_CREATED = TopicState.created


class TopicDraft:
    """Hold a topic that an event asked for; its partitions become a list when the first one changes."""

    __slots__ = (
        "_held",
        "config",
        "deletion_waits",
        "dirty",
        "min_isr",
        "partitions",
        "state",
        "topic",
        "topic_id",
        "unclean_allowed",
    )

    def __init__(self, topic: Topic, policy: Policy) -> None:
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.state = topic.state
        self.config = topic.config
        self.deletion_waits = topic.deletion_waits
        self.partitions: list[Partition] | tuple[Partition, ...] = topic.partitions
        self.dirty = False
        self._held: Counter[ReplicaState] | None = None
        self.read_config(policy)

    def read_config(self, policy: Policy) -> None:
        """Take what the rules ask of a topic's settings: its own first, else the cluster's."""
        own = {name: self.config[name] for name in TOPIC_NAMES if name in self.config}
        policy = laid_over(policy, own)
        self.min_isr = policy.min_insync_replicas
        self.unclean_allowed = policy.unclean_leader_election_enable

    @property
    def is_deleting(self) -> bool:
        """Say whether its deletion has begun."""
        return self.state != _CREATED

    @property
    def is_reassigning(self) -> bool:
        """Say whether any of its partitions is being reassigned."""
        return any(partition.is_reassigning for partition in self.partitions)

    @property
    def is_queued_for_deletion(self) -> bool:
        """Say whether its deletion has begun, or waits."""
        return self.deletion_waits or self.state != TopicState.created

    @property
    def shown_state(self) -> TopicState:
        """Give the state as it is told: a deletion that waits is held up."""
        return TopicState.ineligible if self.deletion_waits else self.state

    def put(self, partition: Partition) -> None:
        """Put a partition in the place of the one that has its number."""
        if not isinstance(self.partitions, list):
            self.partitions = list(self.partitions)
        if self._held is not None:
            self._held.subtract(self.partitions[partition.partition].replica_states)
            self._held.update(partition.replica_states)
        self.partitions[partition.partition] = partition
        self.dirty = True

    def has_replica_in(self, state: ReplicaState) -> bool:
        """Say whether any replica is in ``state``.

        They are counted when first asked for, and from then on by ``put``: a deletion asks with each report.
        """
        if self._held is None:
            self._held = Counter(state for partition in self.partitions for state in partition.replica_states)
        return self._held[state] > 0

    def partition(self, number: int) -> Partition | None:
        """Find a partition by its number."""
        return self.partitions[number] if 0 <= number < len(self.partitions) else None

    def frozen(self) -> Topic:
        """Give the topic as it stands, to be kept."""
        return Topic(self.topic, self.topic_id, self.state, self.config, tuple(self.partitions), self.deletion_waits)
