"""A topic while a batch of events is worked into it."""

from isrflow.state.partition import Partition, Topic, TopicState
from isrflow.state.policy import TOPIC_NAMES, Policy, laid_over

_CREATED = TopicState.created


class TopicDraft:
    """Hold a topic that an event asked for; its partitions become a list when the first one changes."""

    __slots__ = (
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
        self.read_config(policy)

    def read_config(self, policy: Policy) -> None:
        """Take what the rules ask of a topic's settings: its own first, else the cluster's."""
        own = {name: self.config[name] for name in TOPIC_NAMES if name in self.config}
        policy = laid_over(policy, own)
        self.min_isr = policy.min_insync_replicas
        self.unclean_allowed = policy.unclean_leader_election_enable

    @property
    def is_deleting(self) -> bool:
        return self.state != _CREATED

    @property
    def is_reassigning(self) -> bool:
        return any(partition.is_reassigning for partition in self.partitions)

    @property
    def is_queued_for_deletion(self) -> bool:
        return self.deletion_waits or self.state != TopicState.created

    @property
    def shown_state(self) -> TopicState:
        return TopicState.ineligible if self.deletion_waits else self.state

    def put(self, partition: Partition) -> None:
        if not isinstance(self.partitions, list):
            self.partitions = list(self.partitions)
        self.partitions[partition.partition] = partition
        self.dirty = True

    def partition(self, number: int) -> Partition | None:
        return self.partitions[number] if 0 <= number < len(self.partitions) else None

    def frozen(self) -> Topic:
        return Topic(self.topic, self.topic_id, self.state, self.config, tuple(self.partitions), self.deletion_waits)
