"""Commit what a rule decides about partitions that are alike: ask the rule for one of them, and repeat its effect.

The problem: a lost broker changes tens of thousands of partitions at one tick. For each of them the rule elects, and
the pipeline applies, checks, counts and records.

The insight: no rule depends on which brokers have the replicas, only on what is at each place of the assignment: the
state of the broker and of the replica there, and whether it leads, is in sync and has requests. So partitions are alike
if they have the same at each place. A hundred thousand partitions have a few dozen such combinations, on any number of
brokers. What happened to one partition is told in places too, and is repeated for all that are like it.

    partition ─► like one before? ── no ──► rule ─► commit ─► effect, remembered
                        │ yes                                    │
                        └──────────► the same effect  ◄──────────┘
                                     at the same places; epochs rise by as much

An effect is about no shard and no batch, so the shards of a task share what is remembered (``batch.Remembered``).

So there is still one set of rules, and this file knows none of them. ``_likeness`` lists what a rule may depend on, and
``_Effect`` what it may change. The rule itself decides each partition that is not plain (it is being reassigned, has
lost logs or crashed members), and each one whose effect cannot be told in places. Rejected: the rules a second time as
array operations, because two sets of rules drift apart, and because pages hold rows: to convert partitions into arrays
and back costs as much as to repeat an effect.
"""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Generic, TypeVar

import msgspec

from controller_logic.apply import with_requested_epochs
from controller_logic.batch import Batch
from controller_logic.fencing import Refusal
from controller_logic.running_totals import CountsDifference
from controller_logic.working_topic import WorkingTopic
from state.alike import Form, Said, form_of
from state.decisions import LeaderAndIsr, StopReplica
from state.ids import NO_EPOCH, NO_LEADER
from state.partition import LeaderRecoveryState, Partition, PartitionState, ReplicaState

# The most effects that are remembered.
REMEMBERED_MAX = 10_000

T = TypeVar("T")

# It gets the batch, a topic, a partition, and what ``commit`` is given. It may change only that partition and the
# counts. Of the brokers it may use only what ``_Statuses`` tells.
Rule = Callable[..., T]
# Bytes, because their hash is the cheapest one.
_Places = bytes


class _Effect(msgspec.Struct, frozen=True, gc=False):
    """What a rule did to a partition, with places in the assignment for brokers."""

    # What the rule returned.
    answer: Any
    # Whether the partition stays as it is.
    is_none: bool
    state: PartitionState
    replica_states: tuple[ReplicaState, ...]
    # None: it stays as it is.
    isr: _Places | None
    elr: _Places
    last_known_elr: _Places
    former_members: _Places
    # NO_LEADER if there is none.
    leader: int
    leader_step: int
    partition_step: int
    leader_recovery_state: LeaderRecoveryState
    # Whether the high watermark belongs to no epoch now.
    is_unclean: bool
    # The replicas that are asked to act on the leader epoch.
    addressed: _Places
    forms: tuple[Form, ...]
    difference: CountsDifference

    def on(self, before: Partition) -> Partition:
        """Return what becomes of a partition."""
        replicas = before.replicas
        leader_epoch = before.leader_epoch + self.leader_step
        requested = before.requested_epochs
        if self.addressed:
            addressed = [replicas[place] for place in self.addressed]
            requested = with_requested_epochs(replicas, requested, addressed, leader_epoch)
        return Partition(
            before.partition,
            self.state,
            replicas,
            self.replica_states,
            before.isr if self.isr is None else tuple([replicas[place] for place in self.isr]),
            self.leader if self.leader == NO_LEADER else replicas[self.leader],
            leader_epoch,
            before.partition_epoch + self.partition_step,
            self.leader_recovery_state,
            (),
            (),
            before.high_watermark,
            NO_EPOCH if self.is_unclean else before.high_watermark_epoch,
            before.log_end_offsets,
            before.offset_epochs,
            (),
            before.completed_epochs,
            requested,
            before.received_epochs,
            before.lags,
            (),
            before.directories,
            elr=tuple([replicas[place] for place in self.elr]),
            last_known_elr=tuple([replicas[place] for place in self.last_known_elr]),
            former_members=tuple([replicas[place] for place in self.former_members]),
            min_isr_read=0 if self.leader_step else before.min_isr_read,
        )


class _Statuses(dict[int, int]):
    """All that rules may depend on about each broker, as a number. It is found when a partition needs it."""

    def __init__(self, batch: Batch, about: Collection[int]) -> None:
        self._state = batch.state
        self._numbers = batch.remembered.status_numbers
        self._about = about
        self.broker_readings = batch.state.broker_readings

    def __missing__(self, broker: int) -> int:
        held, sets = self._state.brokers.get(broker), self._state.broker_sets
        status = (broker in self._about, held and held.state, *[broker in members for members in sets])
        number = self[broker] = self._numbers.setdefault(status, len(self._numbers))
        return number


class Alike(Generic[T]):
    """One rule, applied at one event to many partitions of topics that are not being deleted.

    ``about`` are the brokers that the event is about.
    """

    def __init__(self, batch: Batch, rule: Rule[T], about: Collection[int] = ()) -> None:
        self.batch = batch
        self.rule = rule
        statuses = batch.statuses
        if about or statuses is None or statuses.broker_readings != batch.state.broker_readings:
            statuses = _Statuses(batch, about)
        if not about:
            batch.statuses = statuses
        self._statuses = statuses
        self._saying = batch.recorder.saying()

    def commit(
        self, topic: WorkingTopic, before: Partition, *given: Any, named: tuple[int, ...] = (), asked: Hashable = None
    ) -> T:
        """Do to a partition what the rule does, and return what the rule returns.

        The rule also gets what is ``given``. Of this it may depend on ``named``, which are brokers, and on ``asked``.
        """
        key = None
        moves = before.adding_replicas or before.removing_replicas or before.removed
        if not (moves or before.lost_logs or before.former_members or before.reported_logs):
            key = self._likeness(topic, before, named, asked)
        effect: _Effect | None = self.batch.remembered.effects.get(key)
        if effect is None:
            return self._ask(topic, before, given, key)
        if not effect.is_none:
            after = effect.on(before)
            topic.put(after)
            self.batch.state.totals.add(effect.difference, after.replicas)
            self.batch.recorder.say_alike(effect.forms, self._saying, topic, after)
        answer: T = effect.answer
        return answer

    def _likeness(
        self, topic: WorkingTopic, before: Partition, named: tuple[int, ...], asked: Hashable
    ) -> Hashable | None:
        """Return all that the rule may depend on; None if it has to be asked.

        A new field of ``Partition`` that rules depend on must be here, and in ``_Effect`` if a rule may change it.
        """
        replicas, leader = before.replicas, before.leader
        place, is_new = replicas.index, before.leader_epoch == NO_EPOCH
        try:
            return (
                self.rule,
                topic.min_isr,
                topic.unclean_allowed,
                topic.recovery,
                bytes(map(self._statuses.__getitem__, replicas)),
                bytes((before.state, before.leader_recovery_state, *before.replica_states)),
                leader if leader == NO_LEADER else place(leader),
                bytes(map(place, before.isr)),
                self.batch.state.has_eligible_leaders,
                bytes(map(place, before.elr)),
                bytes(map(place, before.last_known_elr)),
                before.min_isr_read,
                is_new,
                before.partition_epoch == NO_EPOCH,
                # The replicas that may choose their directory are told in order of id.
                bytes(map(place, sorted(replicas))) if is_new and self.batch.state.dir_choosers else b"",
                before.requested_epochs and _from(before.leader_epoch, before.requested_epochs),
                before.completed_epochs and _from(before.leader_epoch, before.completed_epochs),
                bytes(map(place, named)),
                asked,
            )
        except ValueError:
            # It names a broker that has no replica, or has more replicas than a byte can count.
            return None

    def _ask(self, topic: WorkingTopic, before: Partition, given: tuple[Any, ...], key: Hashable | None) -> T:
        recorder, effects = self.batch.recorder, self.batch.remembered.effects
        count = len(recorder.said)
        answer = self.rule(self.batch, topic, before, *given)
        effect = None
        if key is not None and not isinstance(answer, Refusal):
            effect = _effect_of(topic, before, recorder.said[count:], answer)
        if effect is not None:
            if len(effects) >= REMEMBERED_MAX:
                effects.clear()
            effects[key] = effect
        return answer


def _from(leader_epoch: int, epochs: Iterable[int]) -> tuple[int | None, ...]:
    return tuple([None if epoch == NO_EPOCH else epoch - leader_epoch for epoch in epochs])


def _effect_of(topic: WorkingTopic, before: Partition, said: list[Said], answer: object) -> _Effect | None:
    """Return the effect that the rule had on a partition; None if it did something that an effect cannot repeat."""
    after = topic.partitions[before.partition]
    replicas = before.replicas
    forms = _forms(after, said)
    if forms is None or after.replicas != replicas:
        return None
    requests = enumerate(after.requested_epochs if after.requested_epochs != before.requested_epochs else ())
    effect = _Effect(
        answer=answer,
        is_none=after is before,
        state=after.state,
        replica_states=after.replica_states,
        isr=None if after.isr == before.isr else bytes(map(replicas.index, after.isr)),
        elr=bytes(map(replicas.index, after.elr)),
        last_known_elr=bytes(map(replicas.index, after.last_known_elr)),
        former_members=bytes(map(replicas.index, after.former_members)),
        leader=NO_LEADER if after.leader == NO_LEADER else replicas.index(after.leader),
        leader_step=after.leader_epoch - before.leader_epoch,
        partition_step=after.partition_epoch - before.partition_epoch,
        leader_recovery_state=after.leader_recovery_state,
        is_unclean=any(form.is_unclean for form in forms),
        addressed=bytes([place for place, epoch in requests if epoch == after.leader_epoch]),
        forms=forms,
        difference=CountsDifference.between(before, after, topic.min_isr),
    )
    return effect if effect.on(before) == after else None


def _forms(after: Partition, said: list[Said]) -> tuple[Form, ...] | None:
    """Return the forms of the decisions; None if one is not about this partition as it now stands."""
    forms = []
    for one in said:
        if not isinstance(one, LeaderAndIsr | StopReplica) or one.partition != after.partition:
            return None
        form = form_of(one, after.replicas)
        if form is None:
            return None
        forms.append(form)
    return tuple(forms)
