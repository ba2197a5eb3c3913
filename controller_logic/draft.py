"""The state of a shard while a batch of events is worked into it."""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from isrflow.controller_logic.apply import apply
from isrflow.controller_logic.routing import TOPIC_EVENTS
from isrflow.state.broker import Broker
from isrflow.state.change import PartitionChange
from isrflow.state.cluster import Outcome, State, Totals, counted
from isrflow.state.decisions import Answer, AnyDecision, BrokerDecision, LeaderAndIsr, Rejected, StopReplica
from isrflow.state.events import AnyEvent, Logged, Malformed, Progress
from isrflow.state.ids import NO_EPOCH
from isrflow.state.invariants import broken_rules
from isrflow.state.partition import LeaderRecoveryState, Partition, Topic, TopicState
from isrflow.state.policy import Policy, laid_over
from isrflow.state.reason import Reason

_OFFLINE_PLACE = Totals.__struct_fields__.index("offline")
_RECOVERY_NAMES = {int(member): member.name for member in LeaderRecoveryState}


class TopicDraft:
    """Hold a topic that an event asked for; its partitions become a list when the first one changes."""

    __slots__ = ("config", "dirty", "min_isr", "partitions", "state", "topic", "topic_id", "unclean_allowed")

    def __init__(self, topic: Topic, policy: Policy) -> None:
        self.topic = topic.topic
        self.topic_id = topic.topic_id
        self.state = topic.state
        self.config = topic.config
        self.partitions: list[Partition] | tuple[Partition, ...] = topic.partitions
        self.dirty = False
        self.read_config(policy)

    def read_config(self, policy: Policy) -> None:
        """Take what the rules ask of a topic's settings: its own first, else the cluster's."""
        if self.config:
            policy = laid_over(policy, self.config)
        self.min_isr = policy.min_insync_replicas
        self.unclean_allowed = policy.unclean_leader_election_enable

    @property
    def is_deleting(self) -> bool:
        return self.state != TopicState.created

    def put(self, partition: Partition) -> None:
        if not isinstance(self.partitions, list):
            self.partitions = list(self.partitions)
        self.partitions[partition.partition] = partition
        self.dirty = True

    def partition(self, number: int) -> Partition | None:
        return self.partitions[number] if 0 <= number < len(self.partitions) else None

    def frozen(self) -> Topic:
        return Topic(self.topic, self.topic_id, self.state, self.config, tuple(self.partitions))


class Draft:
    """Hold a shard's state as far as the batch has come, and the decisions made on the way.

    ``active`` brokers may lead and join an ISR, ``live`` ones serve; both follow ``brokers``.
    ``writes`` says whether this shard writes what all shards decide alike of the event at hand.
    """

    def __init__(self, state: State, policy: Policy, overrides: Mapping[str, str]) -> None:
        cluster = state.cluster
        self.cluster = cluster
        self.seq = cluster.seq
        self.now = cluster.clock_ms
        self.raw = b""
        self.event: AnyEvent | Malformed | Progress = Progress()
        self.writes = cluster.writes_cluster_decisions
        self.controller_id = cluster.controller_id
        self.controller_epoch = cluster.controller_epoch
        self.settings = cluster.settings
        self.config = cluster.config
        self.broker_config = cluster.broker_config
        self.brokers = dict(cluster.brokers)
        self.moved = set(cluster.moved)
        self.decisions: list[AnyDecision] = []
        self._counts: list[int] = list(msgspec.structs.astuple(cluster.totals))
        self._base_policy = policy
        self._overrides = dict(overrides)
        self._stored = state.topics
        self._open: dict[str, TopicDraft | None] = {}
        self._names: list[str] | None = None
        self._twins: dict[str, str] | None = None
        self.policy = policy
        self.read_policy()
        self._read_brokers()

    def begin(self, logged: Logged) -> None:
        """Take up the next event of the log."""
        self.seq = logged.seq
        self.now = max(self.now, logged.clock_ms)
        self.raw = logged.raw
        self.event = logged.event
        self.writes = isinstance(logged.event, TOPIC_EVENTS) or self.cluster.writes_cluster_decisions

    # Settings

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

    # Brokers

    def put_broker(self, broker: Broker) -> None:
        former = self.brokers.get(broker.broker)
        self.brokers[broker.broker] = broker
        if former is None or former.state != broker.state:
            self._read_brokers()

    def remove_broker(self, broker: int) -> None:
        del self.brokers[broker]
        self._read_brokers()

    def _read_brokers(self) -> None:
        self.active = frozenset(b.broker for b in self.brokers.values() if b.is_active)
        self.live = frozenset(b.broker for b in self.brokers.values() if b.is_live)

    # Topics

    def topic(self, name: str) -> TopicDraft | None:
        """Find a topic by name, loading it if the batch has not yet."""
        if name in self._open:
            return self._open[name]
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
            self._names = sorted(opened.union(self._stored.names()))
        return self._names

    def twin_of(self, name: str) -> str | None:
        """Find a topic whose name differs from ``name`` in ``.`` and ``_`` only."""
        if "." not in name and "_" not in name:
            return None
        if self._twins is None:
            self._twins = {topic.replace(".", "_"): topic for topic in self.names()}
        return self._twins.get(name.replace(".", "_"))

    def add_topic(self, topic: Topic) -> TopicDraft:
        """Put in a topic that has no partitions yet."""
        added = TopicDraft(topic, self.policy)
        added.partitions = []
        added.dirty = True
        self._open[topic.topic] = added
        self._names = None
        if self._twins is not None:
            self._twins[topic.topic.replace(".", "_")] = topic.topic
        self._counts[0] += 1
        return added

    def add_partition(self, topic: TopicDraft, partition: Partition) -> None:
        """Append a partition that has had no leader yet."""
        topic.partitions = [*topic.partitions] if not isinstance(topic.partitions, list) else topic.partitions
        topic.partitions.append(partition)
        topic.dirty = True
        self.count(topic, partition, 1)

    def count(self, topic: TopicDraft, partition: Partition, sign: int) -> None:
        """Add what a partition counts for to the shard's totals, or with -1 take it away."""
        if topic.is_deleting:
            return
        counts = self._counts
        for index, amount in enumerate(counted(partition, topic.min_isr), start=1):
            if amount:
                counts[index] += sign * amount

    @property
    def leaderless(self) -> int:
        """Count the partitions without a leader."""
        return int(self._counts[_OFFLINE_PLACE])

    # Changes

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

        A change that would break an invariant is not made: the partition stays, and is reported.
        """
        if change is None:
            return before
        after = apply(before, change)
        broken = broken_rules(before, after)
        if broken:
            self._report_broken(topic, before, broken)
            return before
        topic.put(after)
        if after.partition_epoch != before.partition_epoch:
            self.count(topic, before, -1)
            self.count(topic, after, 1)
            is_new = before.leader_epoch == NO_EPOCH
            self.say_leader_and_isr(topic, after, reason, to=to, is_new=is_new, unclean=change.unclean)
        return after

    def say_leader_and_isr(
        self,
        topic: TopicDraft,
        partition: Partition,
        reason: Reason,
        *,
        to: tuple[int, ...] | None = None,
        is_new: bool = False,
        unclean: bool = False,
    ) -> None:
        """Tell who leads; ``to`` is every live replica unless it is given."""
        live = self.live
        self.decisions.append(
            LeaderAndIsr(
                seq=self.seq,
                controller_epoch=self.controller_epoch,
                time_ms=self.now,
                reason=reason,
                topic=topic.topic,
                topic_id=topic.topic_id,
                partition=partition.partition,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                isr=partition.isr,
                partition_epoch=partition.partition_epoch,
                replicas=partition.replicas,
                adding_replicas=partition.adding_replicas,
                removing_replicas=partition.removing_replicas,
                leader_recovery_state=_RECOVERY_NAMES[partition.leader_recovery_state],
                is_new=is_new,
                unclean=unclean,
                to=tuple([replica for replica in partition.replicas if replica in live]) if to is None else to,
            )
        )

    def say_stop_replica(
        self, topic: TopicDraft, partition: Partition, reason: Reason, *, delete: bool, to: tuple[int, ...]
    ) -> None:
        """Tell brokers to stop following, and with ``delete`` to remove the log."""
        self.decisions.append(
            StopReplica(
                **self.said(reason),
                topic=topic.topic,
                topic_id=topic.topic_id,
                partition=partition.partition,
                leader_epoch=partition.leader_epoch,
                delete=delete,
                to=to,
            )
        )

    def say_broker(self, broker: Broker, reason: Reason) -> None:
        """Tell a broker's state, on the one shard that writes it."""
        if self.writes:
            self.decisions.append(self.broker_decision(broker, reason, broker.state.name))

    def broker_decision(self, broker: Broker, reason: Reason, state: str) -> BrokerDecision:
        """Make the decision that tells a broker's state."""
        return BrokerDecision(
            **self.said(reason),
            broker=broker.broker,
            broker_epoch=broker.broker_epoch,
            incarnation=broker.incarnation,
            state=state,
            rack=broker.rack,
            listeners=broker.listeners,
        )

    # Answers

    def said(self, reason: Reason) -> dict[str, Any]:
        """Give the fields that every decision of the event at hand has."""
        return {
            "seq": self.seq,
            "controller_epoch": self.controller_epoch,
            "time_ms": self.now,
            "reason": reason,
        }

    def answer(self, error: str = "NONE", message: str = "", *, part: bool = False, **fields: Any) -> None:
        """Answer the event at hand; with ``part`` every shard gives its part, to be merged."""
        if not (self.writes or part):
            return
        event = self.event
        request = event.request if isinstance(event, Malformed) else str(event.__struct_config__.tag)
        self.decisions.append(
            Answer(
                **self.said(Reason.REQUEST_DONE if error == "NONE" else Reason.REQUEST_REFUSED),
                request_id=getattr(event, "request_id", None),
                request=request,
                error=error,
                message=message,
                **fields,
            )
        )

    def answer_if_asked(self, error: str = "NONE", message: str = "", **fields: Any) -> None:
        """Answer the event at hand if it carries a request id."""
        if getattr(self.event, "request_id", None) is not None:
            self.answer(error, message, **fields)

    def reject(self, field: str, message: str, reason: Reason) -> None:
        """Report the event at hand as one that cannot be obeyed."""
        if self.writes:
            raw = self.raw.decode(errors="backslashreplace")
            self.decisions.append(Rejected(**self.said(reason), raw=raw, field=field, message=message))

    def _report_broken(self, topic: TopicDraft, partition: Partition, broken: list[str]) -> None:
        self.decisions.append(
            Rejected(
                **self.said(Reason.INVARIANT_BROKEN),
                raw=self.raw.decode(errors="backslashreplace"),
                field="partition",
                message=f"{topic.topic}-{partition.partition} was left as it is: {'; '.join(broken)}",
                topic=topic.topic,
                partition=partition.partition,
            )
        )

    def outcome(self) -> Outcome:
        """Freeze the draft."""
        changes = {
            name: None if topic is None else topic.frozen()
            for name, topic in self._open.items()
            if topic is not None and topic.dirty
        }
        cluster = msgspec.structs.replace(
            self.cluster,
            seq=self.seq,
            clock_ms=self.now,
            controller_id=self.controller_id,
            controller_epoch=self.controller_epoch,
            settings=self.settings,
            config=self.config,
            broker_config=self.broker_config,
            brokers=self.brokers,
            moved=tuple(sorted(self.moved)),
            totals=Totals(*self._counts),
        )
        return Outcome(State(cluster, self._stored.changed(changes)), changes, self.decisions)
