"""The state in the middle of a batch of events.

A batch starts from the stored state, which is frozen. Each event must see what the events before it led to, so during
the batch the state is here: cluster-wide values as attributes, topics as ``WorkingTopic`` once an event asks for them.
``frozen`` gives the state to be stored, and which topics changed.

Rules only read it. Only the commit pipeline (``commit`` and the files ``commit_*``) calls the methods that change it.
So every change of state is in those files, beside the decision that records it
(``tests/controller_logic/test_commit.py`` checks this).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Set

from msgspec.structs import replace

from controller_logic.broker_sets import BrokerSets, inputs_of, sets_of
from controller_logic.running_totals import RunningTotals
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker, BrokerState
from state.cluster import Changes, State
from state.events import Logged
from state.ids import without_collisions
from state.metadata_quorum import Gateway
from state.partition import Partition, Topic
from state.policy import Policy, laid_over


class WorkingState:
    """A shard's state in the middle of a batch."""

    def __init__(self, state: State, policy: Policy, overrides: Mapping[str, str]) -> None:
        cluster = state.cluster
        # The cluster as stored before the batch; its shard number and shard count hold throughout.
        self.cluster = cluster
        # The newest event that was applied.
        self.seq = cluster.seq
        # The engine's clock, and the bus's time at which it was last set.
        self.now_ms = cluster.clock_ms
        self.clock_entered_ms = cluster.clock_entered_ms
        self.has_engine_clock = cluster.has_engine_clock
        # The newest claim.
        self.controller_id = cluster.controller_id
        self.controller_epoch = cluster.controller_epoch
        # Layers of settings, the lowest first: base, claim's, an observed controller's file, cluster's dynamic ones,
        # overrides. ``policy`` is the sum. Only a claim turns ``no_op`` on, so a log without one has none.
        self._base_policy = replace(policy, metadata_max_idle_interval_ms=0)
        self.settings = cluster.settings
        self.config = cluster.config
        self._overrides = dict(overrides)
        self.broker_config = cluster.broker_config
        self.in_force = cluster.in_force
        self._brokers = dict(cluster.brokers)
        # Each in its newest run.
        self.gateways: Mapping[int, Gateway] = cluster.gateways
        self.quorum = cluster.quorum
        self.balance_due_ms = cluster.balance_due_ms
        self.imbalance_seq = cluster.imbalance_seq
        self.next_producer_id = cluster.next_producer_id
        self.acls = cluster.acls
        self.entities = cluster.entities
        self.level, self.engine_level, self.shadow = cluster.level, cluster.engine_level, cluster.shadow
        # By topic: the partitions whose high watermark is derived at the next tick.
        self.watermarks_due: defaultdict[str, set[int]] = defaultdict(set)
        for name, number in cluster.watermarks_due:
            self.watermarks_due[name].add(number)
        # By topic and partition: until when it waits for the logs of crashed members.
        self.recoveries_due = {(name, number): due_ms for name, number, due_ms in cluster.recoveries_due}
        # Topics whose deletion waited for a reassignment, which has ended.
        self.deletions_due = set(cluster.deletions_due)
        self.totals = RunningTotals(cluster.totals, cluster.backlog)
        self._stored = state.topics
        # None: there is no such topic, or none any more.
        self._open: dict[str, WorkingTopic | None] = {}
        self._removed: set[str] = set()
        self._names: list[str] | None = None
        self._twins: dict[str, str | None] = {}
        # Rises when a set of brokers may have changed.
        self.broker_readings = 0
        self._read_policy()
        self._read_brokers()

    # Read by rules

    @property
    def brokers(self) -> Mapping[int, Broker]:
        return self._brokers

    @property
    def has_eligible_leaders(self) -> bool:
        """Whether partitions keep eligible leader replicas (KIP-966)."""
        return self.policy.eligible_leader_replicas_version > 0

    @property
    def has_log_reports(self) -> bool:
        """Whether all brokers report their logs (``replica_log``): those of Kafka, behind gateways, do not."""
        return not self.gateways

    def live_replicas(self, partition: Partition, *, but: Set[int] = frozenset()) -> tuple[int, ...]:
        """List the replicas whose brokers are live, in order of assignment, without those in ``but``."""
        live = self.live
        found = []
        for replica in partition.replicas:
            if replica in live and replica not in but:
                found.append(replica)
        return tuple(found)

    def topic(self, name: str) -> WorkingTopic | None:
        """Find a topic by name. The first call for a name loads it."""
        opened = self._open.get(name)
        if opened is not None or name in self._open:
            return opened
        stored = self._stored.get(name)
        found = None if stored is None else WorkingTopic(stored, self.policy, self.has_log_reports)
        self._open[name] = found
        return found

    def topics(self) -> Iterator[WorkingTopic]:
        """Yield all topics of this shard in order of name."""
        for name in self._topic_names():
            topic = self.topic(name)
            if topic is not None:
                yield topic

    def _topic_names(self) -> list[str]:
        if self._names is None:
            # Some of them may be gone.
            self._names = sorted({*self._open, *self._stored.names()})
        return self._names

    def twin_of(self, name: str) -> str | None:
        """Find a topic whose name differs from ``name`` in ``.`` and ``_`` only."""
        if "." not in name and "_" not in name:
            return None
        unified = without_collisions(name)
        if unified not in self._twins:
            self._twins[unified] = self._stored.twin_of(name)
        return self._twins[unified]

    def policy_under(self, config: dict[str, str]) -> Policy:
        """Return the policy that the claim's settings give with ``config`` as the cluster's dynamic settings."""
        return laid_over(laid_over(self._base_policy, self.settings), config)

    # Called by the commit pipeline

    def begin(self, logged: Logged) -> None:
        self.seq = logged.seq
        if not self.has_engine_clock and self.shadow is None and logged.clock_ms > self.now_ms:
            self.now_ms = logged.clock_ms

    def put_settings(self, settings: dict[str, str], config: dict[str, str]) -> None:
        """Replace the claim's settings and the cluster's dynamic ones.

        The totals count partitions below min.insync.replicas, so all are counted again when that setting changes.
        """
        self.settings, self.config = settings, config
        if self._sum_of_layers().min_insync_replicas == self.policy.min_insync_replicas:
            self._read_policy()
            return
        topics = list(self.topics())
        for topic in topics:
            self.totals.take_out_partitions(topic)
        self._read_policy()
        for topic in topics:
            self.totals.put_back_partitions(topic)

    def _read_policy(self) -> None:
        self.policy = self._sum_of_layers()
        for topic in self._open.values():
            if topic is not None:
                topic.read_config(self.policy, self.has_log_reports)

    def _sum_of_layers(self) -> Policy:
        policy = self._base_policy
        static = self.shadow.static_settings if self.shadow is not None else {}
        for layer in (self.settings, static, self.config, self._overrides):
            policy = laid_over(policy, layer)
        return policy

    def put_gateways(self, gateways: Mapping[int, Gateway]) -> None:
        """Replace the gateways. With the first one another strategy may count (``WorkingTopic.recovery``)."""
        had_log_reports, self.gateways = self.has_log_reports, gateways
        if self.has_log_reports != had_log_reports:
            self._read_policy()

    def put_broker(self, broker: Broker) -> None:
        """Put in a broker as it is from now on, or take it out if it is unregistered."""
        number = broker.broker
        former = self._brokers.get(number)
        if broker.state == BrokerState.unregistered:
            del self._brokers[number]
            self._take(self.broker_sets.without(number))
            return
        self._brokers[number] = broker
        if former is None or inputs_of(former) != inputs_of(broker):
            self._take(self.broker_sets.put(broker))

    def _read_brokers(self) -> None:
        self._take(sets_of(self._brokers.values()))

    def _take(self, sets: BrokerSets) -> None:
        self.broker_sets = sets
        self.broker_readings += 1
        # As attributes, because a rule asks for them at every partition.
        self.active, self.live, self.reporting, self.awaited, with_dir_left, self.dir_choosers = sets
        # The log directory of each new replica, where only one of several is left.
        self.dirs_left = {number: self._brokers[number].log_dirs[0] for number in with_dir_left}

    def add_topic(self, topic: Topic) -> WorkingTopic:
        """Put in a new topic that has no partitions yet."""
        added = WorkingTopic(topic, self.policy, self.has_log_reports)
        added.differs = True
        self._open[topic.topic] = added
        self._names = None
        self._twins[without_collisions(topic.topic)] = topic.topic
        self.totals.add_topic()
        return added

    def remove_topic(self, topic: WorkingTopic) -> None:
        """Forget a topic and everything that is due for it, so that a new topic of its name inherits nothing."""
        name = topic.topic
        self.watermarks_due.pop(name, None)
        self.recoveries_due = {place: due_ms for place, due_ms in self.recoveries_due.items() if place[0] != name}
        self._open[name] = None
        self._removed.add(name)
        self._twins[without_collisions(name)] = None

    def frozen(self) -> tuple[State, Changes]:
        """Return the state to be stored, and the topics that changed; None for a topic that is gone."""
        changes: dict[str, Topic | None] = dict.fromkeys(self._removed)
        changes |= {name: topic.frozen() for name, topic in self._open.items() if topic is not None and topic.differs}
        cluster = replace(
            self.cluster,
            seq=self.seq,
            clock_ms=self.now_ms,
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            clock_entered_ms=self.clock_entered_ms,
            has_engine_clock=self.has_engine_clock,
            settings=self.settings,
            config=self.config,
            broker_config=self.broker_config,
            in_force=self.in_force,
            brokers=self._brokers,
            watermarks_due=_in_order(self.watermarks_due),
            deletions_due=tuple(sorted(self.deletions_due)),
            balance_due_ms=self.balance_due_ms,
            imbalance_seq=self.imbalance_seq,
            gateways=dict(self.gateways),
            quorum=self.quorum,
            next_producer_id=self.next_producer_id,
            acls=self.acls,
            entities=self.entities,
            level=self.level,
            engine_level=self.engine_level,
            shadow=self.shadow,
            recoveries_due=tuple(sorted([(*place, due_ms) for place, due_ms in self.recoveries_due.items()])),
            backlog=self.totals.backlog(),
            totals=self.totals.totals(),
        )
        return State(cluster, self._stored.changed(changes)), changes


def _in_order(due: Mapping[str, Set[int]]) -> tuple[tuple[str, int], ...]:
    return tuple([(name, number) for name in sorted(due) for number in sorted(due[name])])
