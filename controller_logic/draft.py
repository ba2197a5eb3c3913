"""The state of a shard while a batch of events is worked into it."""

from collections.abc import Iterator, Mapping, Set

import msgspec

from controller_logic.apply import apply
from controller_logic.minutes import Minutes
from controller_logic.reassignment import Brokers, completed
from controller_logic.replica_machine import online_replicas
from controller_logic.topic_draft import TopicDraft
from state.broker import Broker
from state.change import PartitionChange
from state.cluster import Outcome, State, Totals, counted
from state.ids import NO_EPOCH, NO_LEADER, without_collisions
from state.invariants import broken_rules
from state.partition import Partition, ReplicaState, Topic
from state.policy import Policy, base_of, laid_over
from state.reason import Reason
from state.rules import ONLINE_RULES, STRAYS_RULES

_DELETION_STARTED = ReplicaState.ReplicaDeletionStarted
_OFFLINE_PLACE = Totals.__struct_fields__.index("offline")


class Draft(Minutes):
    """Hold a shard's state as far as the batch has come, and the decisions made on the way.

    ``active`` brokers may lead and join an ISR, ``live`` ones serve, and of these the ``reporting`` ones say how
    far they have come. ``awaited`` are those that report what they delete, now or when they are back. All follow
    ``brokers``.
    """

    def __init__(self, state: State, policy: Policy, overrides: Mapping[str, str]) -> None:
        cluster = state.cluster
        super().__init__(cluster)
        self.controller_id = cluster.controller_id
        self.settings = cluster.settings
        self.config = cluster.config
        self.broker_config = cluster.broker_config
        self.in_force = cluster.in_force
        self.brokers = dict(cluster.brokers)
        self.moved = set(cluster.moved)
        self.waiting = set(cluster.waiting)
        self.balance_due_ms = cluster.balance_due_ms
        self.imbalance_seq = cluster.imbalance_seq
        self.gateways = dict(cluster.gateways)
        self.quorum = cluster.quorum
        self.next_producer_id = cluster.next_producer_id
        self._counts: list[int] = list(msgspec.structs.astuple(cluster.totals))
        self._backlog = dict(cluster.backlog)
        self._base_policy = base_of(policy)
        self._overrides = dict(overrides)
        self._stored = state.topics
        self._open: dict[str, TopicDraft | None] = {}
        self._names: list[str] | None = None
        self._twins: dict[str, str | None] = {}
        self._removed: set[str] = set()
        self.read_policy()
        self._read_brokers()

    def read_policy(self) -> None:
        """Lay the layers of settings over each other again: the last one wins."""
        self.policy = self.preview_policy()
        for topic in self._open.values():
            if topic is not None:
                topic.read_config(self.policy)

    def preview_policy(self) -> Policy:
        """Give the settings that ``read_policy`` would put in force."""
        policy = self._base_policy
        for layer in (self.settings, self.config, self._overrides):
            policy = laid_over(policy, layer)
        return policy

    def put_broker(self, broker: Broker) -> None:
        former = self.brokers.get(broker.broker)
        self.brokers[broker.broker] = broker
        if former is None or (former.state, former.behind_gateway) != (broker.state, broker.behind_gateway):
            self._read_brokers()

    def remove_broker(self, broker: int) -> None:
        del self.brokers[broker]
        self._read_brokers()

    def _read_brokers(self) -> None:
        self.active = frozenset(b.broker for b in self.brokers.values() if b.is_active)
        self.live = frozenset(b.broker for b in self.brokers.values() if b.is_live)
        # Brokers of Kafka 4 report neither that they lead nor that they follow.
        self.reporting = frozenset(b for b in self.live if not self.brokers[b].behind_gateway)
        # One of Kafka 4 that is away finds its strays when it starts: it knows them by their topics' ids.
        away = frozenset(b.broker for b in self.brokers.values() if b.behind_gateway and not b.is_active)
        self.awaited = self.brokers.keys() - (away if self.rules_version >= STRAYS_RULES else frozenset())

    def begin_rules(self, version: int) -> None:
        """Decide by a version of the rules from here on."""
        self.rules_version = version
        self._read_brokers()

    def topic(self, name: str) -> TopicDraft | None:
        """Find a topic by name, loading it if the batch has not yet."""
        opened = self._open.get(name)
        if opened is not None or name in self._open:
            return opened
        stored = self._stored.get(name)
        found = None if stored is None else TopicDraft(stored, self.policy)
        self._open[name] = found
        return found

    def topics(self) -> Iterator[TopicDraft]:
        """Go through all topics of this shard in order of name."""
        for name in self.names():
            topic = self.topic(name)
            if topic is not None:
                yield topic

    def names(self) -> list[str]:
        """List the topics of this shard in order, loading them all if they are stored in pages."""
        if self._names is None:
            opened = {name for name, topic in self._open.items() if topic is not None}
            self._names = sorted(opened.union(self._stored.names()) - self._removed)
        return self._names

    def twin_of(self, name: str) -> str | None:
        """Find a topic whose name differs from ``name`` in ``.`` and ``_`` only."""
        if "." not in name and "_" not in name:
            return None
        unified = without_collisions(name)
        if unified not in self._twins:
            self._twins[unified] = self._stored.twin_of(name)
        return self._twins[unified]

    def add_topic(self, topic: Topic) -> TopicDraft:
        """Put in a topic that has no partitions yet."""
        added = TopicDraft(topic, self.policy)
        added.partitions = []
        added.dirty = True
        self._open[topic.topic] = added
        self._removed.discard(topic.topic)
        self._names = None
        self._twins[without_collisions(topic.topic)] = topic.topic
        self._counts[0] += 1
        return added

    def remove_topic(self, name: str) -> None:
        """Forget a topic, and what moved in it: one created anew under its name starts afresh."""
        topic = self.topic(name)
        if topic is not None:
            self.moved.difference_update([(name, number) for number in range(len(topic.partitions))])
        self._open[name] = None
        self._removed.add(name)
        self._names = None
        self._twins[without_collisions(name)] = None

    def add_partition(self, topic: TopicDraft, partition: Partition) -> None:
        """Append a partition that has had no leader yet."""
        topic.partitions = [*topic.partitions] if not isinstance(topic.partitions, list) else topic.partitions
        topic.partitions.append(partition)
        topic.dirty = True
        self.count(topic, partition, 1)

    def count(self, topic: TopicDraft, partition: Partition, sign: int) -> None:
        """Add what a partition counts for to the shard's totals, or with -1 take it away."""
        if not topic.is_deleting:
            for index, amount in enumerate(counted(partition, topic.min_isr), start=1):
                self._counts[index] += sign * amount

    def _count_change(self, topic: TopicDraft, before: Partition, after: Partition) -> None:
        if topic.is_deleting:
            return
        former = counted(before, topic.min_isr)
        for place, amount in enumerate(counted(after, topic.min_isr)):
            if amount != former[place]:
                self._counts[place + 1] += amount - former[place]
        self._count_backlog(before.backlog, after.backlog)

    def put_progress(self, topic: TopicDraft, before: Partition, after: Partition, place: int) -> None:
        """Put in a partition of which only the progress of the replica at ``place`` with its requests differs."""
        more = after.is_behind(place) - before.is_behind(place)
        if more:
            broker = after.replicas[place]
            self._backlog[broker] = self._backlog.get(broker, 0) + more
        topic.put(after)

    def _count_backlog(self, before: list[int], after: list[int]) -> None:
        if before == after:
            return
        counts = self._backlog
        for broker in before:
            counts[broker] -= 1
        for broker in after:
            counts[broker] = counts.get(broker, 0) + 1

    def count_out(self, topic: TopicDraft) -> None:
        """Take a topic that is about to be deleted out of the shard's totals."""
        for partition in topic.partitions:
            self.count(topic, partition, -1)
            self._count_backlog(partition.backlog, [])
        self._counts[0] -= 1

    @property
    def leaderless(self) -> int:
        """Count the partitions without a leader."""
        return int(self._counts[_OFFLINE_PLACE])

    def change(
        self,
        topic: TopicDraft,
        before: Partition,
        change: PartitionChange | None,
        reason: Reason,
        *,
        to: tuple[int, ...] | None = None,
    ) -> Partition:
        """Make a change, and say it if epochs went up; return the partition as it stands then.

        A reassignment that the change lets complete ends in one with it. A change that would break an
        invariant is not made: the partition stays, and is reported.
        """
        if change is None:
            return before
        if before.is_reassigning or change.replicas is not None:
            end = completed(before, change, Brokers(self.active, self.live, self.awaited), topic.min_isr)
            if end is not None:
                change, reason = end, Reason.REASSIGNMENT
                to = to and tuple([broker for broker in to if broker not in before.removing_replicas])
        if to is None and before.leader == NO_LEADER and self.rules_version >= ONLINE_RULES:
            # As in the classic controller, who is on its way out, or without its log, is not asked to follow.
            to = self._told_by_election(before, change)
        after = apply(before, change, self.reporting if to is None else self.reporting.intersection(to))
        broken = broken_rules(before, after, self.awaited, self.live)
        if broken:
            self.report_broken(topic, before, broken)
            return before
        topic.put(after)
        differs = after.partition_epoch != before.partition_epoch
        if differs or change.replicas is not None:
            self._count_change(topic, before, after)
        if differs:
            is_new = before.leader_epoch == NO_EPOCH
            told = self.live_replicas(after) if to is None else to
            self.say_leader_and_isr(topic, after, reason, to=told, is_new=is_new, unclean=change.unclean)
        if before.is_reassigning and topic.deletion_waits and not after.is_reassigning:
            self.waiting.add(topic.topic)
        if after.removed != before.removed:
            self._tell_removed(topic, before, after)
        return after

    def _told_by_election(self, before: Partition, change: PartitionChange) -> tuple[int, ...] | None:
        """Name whom an election where nobody led is told: the replicas online. None where it is no election."""
        if change.leader is None:
            return None
        replicas, states = change.replicas or before.replicas, change.replica_states or before.replica_states
        return online_replicas(replicas, states, self.active)

    def _tell_removed(self, topic: TopicDraft, before: Partition, after: Partition) -> None:
        """Tell the brokers to delete whose replicas have come to that just now."""
        to = tuple([e.broker for e in after.removed if e.state == _DELETION_STARTED and e not in before.removed])
        if to:
            reason, epoch = Reason.REASSIGNMENT, after.leader_epoch
            self.say_stop_replica(topic, after, reason, leader_epoch=epoch, delete=True, to=to)

    def live_replicas(self, partition: Partition, *, but: Set[int] = frozenset()) -> tuple[int, ...]:
        """List the replicas whose brokers serve, in order of assignment, without those on ``but``."""
        live = self.live
        found = []
        for replica in partition.replicas:
            if replica in live and replica not in but:
                found.append(replica)
        return tuple(found)

    def outcome(self) -> Outcome:
        """Freeze the draft."""
        changes: dict[str, Topic | None] = dict.fromkeys(self._removed)
        changes |= {name: topic.frozen() for name, topic in self._open.items() if topic is not None and topic.dirty}
        cluster = msgspec.structs.replace(
            self.cluster,
            seq=self.seq,
            clock_ms=self.now,
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            rules_version=self.rules_version,
            clock_entered_ms=self.clock_entered_ms,
            settings=self.settings,
            config=self.config,
            broker_config=self.broker_config,
            in_force=self.in_force,
            brokers=self.brokers,
            moved=tuple(sorted(self.moved)),
            waiting=tuple(sorted(self.waiting)),
            balance_due_ms=self.balance_due_ms,
            imbalance_seq=self.imbalance_seq,
            gateways=self.gateways,
            quorum=self.quorum,
            next_producer_id=self.next_producer_id,
            backlog={broker: count for broker, count in sorted(self._backlog.items()) if count},
            totals=Totals(*self._counts),
        )
        return Outcome(State(cluster, self._stored.changed(changes)), changes, self.decisions)
