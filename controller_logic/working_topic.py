"""A topic while a batch of events is applied to it."""

from collections import Counter
from collections.abc import Mapping

from controller_logic.working_partitions import WorkingPartitions
from state.alike import named_in_text
from state.partition import Partition, ReplicaState, Topic, TopicState
from state.policy import COMPARING, Policy, UncleanRecovery, for_topic

_CREATED = TopicState.created


class WorkingTopic:
    """A topic that an event of the batch asked for.

    Rules read it. Only the commit pipeline changes it.
    """

    __slots__ = (
        "_replicas_in_state",
        "config",
        "deletion_waits",
        "differs",
        "min_isr",
        "named",
        "partitions",
        "recovery",
        "state",
        "topic",
        "topic_id",
        "unclean_allowed",
    )

    def __init__(self, topic: Topic, policy: Policy, has_log_reports: bool) -> None:
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.named = named_in_text(topic.topic, topic.topic_id)
        self.state = topic.state
        self.config = topic.config
        self.deletion_waits = topic.deletion_waits
        # partitions[i].partition == i
        self.partitions = WorkingPartitions(topic.partitions)
        # Whether it differs from the topic as stored.
        self.differs = False
        self._replicas_in_state: Counter[ReplicaState] | None = None
        self.read_config(policy, has_log_reports)

    def read_config(self, policy: Policy, has_log_reports: bool) -> None:
        """Read the settings that rules need for a topic: its own first, then the cluster's.

        A strategy that compares logs counts as unset if brokers may report none, or partitions would wait for good.
        """
        policy = for_topic(policy, self.config)
        self.min_isr = policy.min_insync_replicas
        strategy = policy.unclean_recovery_strategy
        if not policy.eligible_leader_replicas_version or (strategy in COMPARING and not has_log_reports):
            strategy = UncleanRecovery.Unset
        # What decides in place of ``unclean_allowed`` once no replica is in sync or eligible.
        self.recovery = strategy or None
        self.unclean_allowed = policy.unclean_leader_election_enable and self.recovery is None

    @property
    def is_deleting(self) -> bool:
        return self.state != _CREATED

    @property
    def is_reassigning(self) -> bool:
        """Whether any of the topic's partitions is being reassigned."""
        return any(partition.is_reassigning for partition in self.partitions.moving())

    @property
    def is_queued_for_deletion(self) -> bool:
        """Whether the topic's deletion has begun or waits."""
        return self.deletion_waits or self.is_deleting

    @property
    def shown_state(self) -> TopicState:
        """The state that decisions show: a deletion that waits is ``ineligible``."""
        return TopicState.ineligible if self.deletion_waits else self.state

    def has_replica_in(self, state: ReplicaState) -> bool:
        """Return whether any replica is in ``state``.

        The first call counts the replicas, and ``put`` then keeps the counts right, because a deletion asks after each
        report.
        """
        if self._replicas_in_state is None:
            self._replicas_in_state = Counter(
                state for partition in self.partitions for state in partition.replica_states
            )
        return self._replicas_in_state[state] > 0

    def partition(self, number: int) -> Partition | None:
        partitions = self.partitions
        return partitions[number] if 0 <= number < partitions.total else None

    def put(self, partition: Partition) -> None:
        """Replace the partition with the same number."""
        if self._replicas_in_state is not None:
            self._replicas_in_state.subtract(self.partitions[partition.partition].replica_states)
            self._replicas_in_state.update(partition.replica_states)
        self.partitions.put(partition)
        self.differs = True

    def put_reports(self, partitions: Mapping[int, Partition]) -> None:
        """Replace partitions by number. No replica is in another state than before."""
        self.partitions.changed.update(partitions)
        self.differs = True

    def append(self, partition: Partition) -> None:
        self.partitions.put(partition)
        self.differs = True

    def put_config(self, config: dict[str, str], policy: Policy, has_log_reports: bool) -> None:
        self.config, self.differs = config, True
        self.read_config(policy, has_log_reports)

    def put_state(self, state: TopicState, *, deletion_waits: bool) -> None:
        self.state, self.deletion_waits, self.differs = state, deletion_waits, True

    def frozen(self) -> Topic:
        """Return the topic as it stands, to be stored."""
        return Topic(self.topic, self.topic_id, self.state, self.config, self.partitions, self.deletion_waits)
