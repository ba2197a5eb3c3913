"""Commit what a rule decides about partitions that are alike: ask the rule for one of them, and repeat its effect.

The problem: a lost broker changes tens of thousands of partitions at one tick. For each of them the rule elects, and
the pipeline applies, checks, counts and records. But what the rule decides follows from few of a partition's values:
its replicas, the ISR, the leader, replica states, and the requests to its brokers. A hundred thousand partitions on ten
brokers have only a few hundred combinations of these values.

The insight: what happened to one partition can be repeated for all that are like it. The effect is the difference
between the partition before and after, the decisions recorded, and the change of the counts.

    partition ─► like one before? ── no ──► rule ─► commit ─► effect, remembered
                        │ yes                                    │
                        └──────────► the same effect  ◄──────────┘
                                     epochs rise by as much, the partition keeps its own numbers

So there is still one set of rules, and this file knows none of them. The rule itself decides each partition that is not
plain (it is being reassigned, has removed replicas, is recovering, or had no leader yet), and each one whose effect has
an unusual shape. Rejected: the rules a second time as array operations, because two sets of rules drift apart, and
because pages hold rows: to convert partitions into arrays and back costs as much as to repeat an effect.
"""

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import msgspec
from msgspec.structs import astuple, replace

from controller_logic.batch import Batch
from controller_logic.running_totals import CountsDifference
from controller_logic.working_topic import WorkingTopic
from state.alike import Pattern, Said, pattern_of, pattern_on
from state.decisions import LeaderAndIsr, StopReplica
from state.ids import NO_EPOCH
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaState
from state.reason import Reason

_RECOVERED = LeaderRecoveryState.RECOVERED
# The most lists of replicas that a batch remembers.
REMEMBERED_MAX = 10_000

T = TypeVar("T")

# May depend only on its arguments, and change only the given partition and the counts.
Rule = Callable[..., T]
NewRule = Callable[[WorkingTopic, tuple[int, ...]], None]


class _Effect(msgspec.Struct, frozen=True, gc=False):
    """What a rule did to a partition."""

    # It applies to a partition in these states.
    state_before: PartitionState
    states_before: tuple[ReplicaState, ...]
    # What the rule returned.
    answer: Any
    # Whether the partition stays as it is.
    is_none: bool
    after: Partition
    leader_step: int
    partition_step: int
    patterns: tuple[Pattern, ...]
    difference: CountsDifference


class Alike(Generic[T]):
    """One rule, applied at one event to many partitions of topics that are not being deleted."""

    def __init__(self, batch: Batch, rule: Rule[T]) -> None:
        self._batch = batch
        self.rule = rule
        self._has_requests = bool(batch.state.reporting)
        self._effects: dict[object, _Effect] = {}

    def commit(self, topic: WorkingTopic, before: Partition, *asked: Hashable) -> T:
        """Do to a partition what the rule does, and return what the rule returns.

        The rule also gets ``asked``, and may depend on its values.
        """
        if not _is_plain(before):
            return self.rule(topic, before, *asked)
        key = (
            before.replicas,
            before.isr,
            before.leader,
            before.requested_epochs,
            before.completed_epochs,
            # Requests are noted by leader epoch. Brokers behind gateways get none.
            before.leader_epoch if self._has_requests else NO_EPOCH,
            topic.min_isr,
            topic.unclean_allowed,
            asked,
        )
        effect = self._effects.get(key)
        if effect is None or effect.states_before != before.replica_states or effect.state_before != before.state:
            return self._ask(topic, before, key, asked)
        if not effect.is_none:
            self._repeat(effect, topic, before)
        answer: T = effect.answer
        return answer

    def _ask(self, topic: WorkingTopic, before: Partition, key: object, asked: tuple[Hashable, ...]) -> T:
        recorder = self._batch.recorder
        count = len(recorder.said)
        answer = self.rule(topic, before, *asked)
        effect = _effect_of(topic, before, topic.partitions[before.partition], recorder.said[count:], answer)
        if effect is not None:
            self._effects[key] = effect
        return answer

    def _repeat(self, effect: _Effect, topic: WorkingTopic, before: Partition) -> None:
        like = effect.after
        after = Partition(
            before.partition,
            like.state,
            before.replicas,
            like.replica_states,
            like.isr,
            like.leader,
            before.leader_epoch + effect.leader_step,
            before.partition_epoch + effect.partition_step,
            _RECOVERED,
            (),
            (),
            before.high_watermark,
            before.high_watermark_epoch,
            before.log_end_offsets,
            before.offset_epochs,
            (),
            before.completed_epochs,
            like.requested_epochs,
            before.received_epochs,
            before.lags,
        )
        topic.put(after)
        self._batch.state.totals.add(effect.difference)
        self._batch.recorder.say_alike(effect.patterns, topic, after)


def _is_plain(partition: Partition) -> bool:
    return not (
        partition.adding_replicas
        or partition.removing_replicas
        or partition.removed
        or partition.leader_recovery_state
        or partition.leader_epoch == NO_EPOCH
        or partition.partition_epoch == NO_EPOCH
        or partition.lost_logs
        or partition.directories
    )


def _effect_of(
    topic: WorkingTopic, before: Partition, after: Partition, said: list[Said], answer: object
) -> _Effect | None:
    """Return the effect that the rule had on a partition; None if it did something that an effect cannot repeat."""
    usual = replace(
        before,
        state=after.state,
        replica_states=after.replica_states,
        isr=after.isr,
        leader=after.leader,
        leader_epoch=after.leader_epoch,
        partition_epoch=after.partition_epoch,
        requested_epochs=after.requested_epochs,
    )
    patterns = _patterns(after, said)
    if usual != after or patterns is None:
        return None
    return _Effect(
        state_before=before.state,
        states_before=before.replica_states,
        answer=answer,
        is_none=after is before,
        after=after,
        leader_step=after.leader_epoch - before.leader_epoch,
        partition_step=after.partition_epoch - before.partition_epoch,
        patterns=patterns,
        difference=CountsDifference.between(before, after, topic.min_isr),
    )


def _patterns(after: Partition, said: list[Said]) -> tuple[Pattern, ...] | None:
    """Return the patterns of the decisions; None if one is not about this partition as it now stands."""
    patterns = []
    for one in said:
        if not isinstance(one, LeaderAndIsr | StopReplica) or one.partition != after.partition:
            return None
        told = one.partition_epoch if isinstance(one, LeaderAndIsr) else after.partition_epoch
        if (one.leader_epoch, told) != (after.leader_epoch, after.partition_epoch):
            return None
        patterns.append(pattern_of(one))
    return tuple(patterns)


class _New(msgspec.Struct, frozen=True, gc=False):
    """What a rule made of a list of replicas."""

    # All fields of the partition but its number.
    values: tuple[Any, ...]
    patterns: tuple[Pattern, ...]
    difference: CountsDifference


class AlikeNew:
    """The rule that adds a partition to a topic, at one event.

    What it did to a list of replicas holds for the later topics of the batch too, as long as the brokers' states, the
    topic's min.insync.replicas and the reason are the same.
    """

    def __init__(self, batch: Batch, topic: WorkingTopic, reason: Reason, rule: NewRule) -> None:
        self._batch = batch
        self.topic = topic
        self.rule = rule
        self._condition = (batch.state.broker_readings, topic.min_isr, reason)
        self._made: dict[tuple[int, ...], _New] = {}

    def commit(self, replicas: tuple[int, ...]) -> None:
        """Add a partition on ``replicas``, as the rule does."""
        made = self._made.get(replicas) or self._made_before(replicas)
        if made is None:
            self._ask(replicas)
            return
        after = Partition(self.topic.partitions.total, *made.values)
        self.topic.append(after)
        self._batch.state.totals.add(made.difference)
        self._batch.recorder.say_alike(made.patterns, self.topic, after)

    def _ask(self, replicas: tuple[int, ...]) -> None:
        recorder, topic = self._batch.recorder, self.topic
        count = len(recorder.said)
        self.rule(topic, replicas)
        after = topic.partitions[-1]
        patterns = _patterns(after, recorder.said[count:])
        if patterns is not None and not after.directories:
            difference = CountsDifference.between(None, after, topic.min_isr)
            made = self._made[replicas] = _New(astuple(after)[1:], patterns, difference)
            remembered = self._batch.new_partitions
            if len(remembered) >= REMEMBERED_MAX:
                remembered.clear()
            remembered[self._condition, replicas] = made

    def _made_before(self, replicas: tuple[int, ...]) -> _New | None:
        """Return what was made of ``replicas`` at an earlier event of the batch, with patterns for this one."""
        former: _New | None = self._batch.new_partitions.get((self._condition, replicas))
        if former is None:
            return None
        state = self._batch.state
        event = {"seq": state.seq, "controller_epoch": state.controller_epoch, "time_ms": state.now_ms}
        patterns = tuple([pattern_on(pattern, **event) for pattern in former.patterns])
        made = self._made[replicas] = replace(former, patterns=patterns)
        return made
