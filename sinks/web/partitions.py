"""Summaries of partitions for the page and the metrics: how many each broker leads, and which ones are at risk."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, compress
from types import MappingProxyType

import msgspec

from state.ids import NO_LEADER
from state.partition import LeaderRecoveryState, Partition, Topic, TopicState
from state.policy import Policy, for_topic, policy_of
from state.risk import (
    AT_MIN_ISR,
    NO_LOSS,
    OFFLINE,
    ONE_FROM_OFFLINE,
    UNDER_MIN_ISR,
    Loss,
    Spread,
    Stand,
    losses_of,
    rack_losses_of,
    stand_of,
)
from state.setting_text import plainly_written
from state.stored.slices import Slice

MIN_ISR = "min.insync.replicas"
UNDER_REPLICATED, RECOVERING, REASSIGNING, DELETING = "under_replicated", "recovering", "reassigning", "deleting"
# Worst first.
PROBLEMS = (
    *(OFFLINE, UNDER_MIN_ISR, ONE_FROM_OFFLINE, AT_MIN_ISR),
    *(UNDER_REPLICATED, RECOVERING, REASSIGNING, DELETING),
)
_RANK = {problem: rank for rank, problem in enumerate(PROBLEMS)}
# The rank of the worst problem, how many replicas are in sync beyond those assigned (≤ 0), and the name.
Order = tuple[int, int, str, int]


class TopicFacts(msgspec.Struct, frozen=True):
    """What the summary of a topic's partitions needs to know of the topic."""

    # None: the topic has no setting of its own.
    min_isr: int | None
    is_deleting: bool


NO_FACTS = TopicFacts(None, False)
# Partitions of a topic from a number on, with the topic's facts.
Stretch = tuple[str, TopicFacts, int]
Parts = Mapping[Stretch, Sequence[Partition]]


class Row(msgspec.Struct, frozen=True, gc=False):
    """A partition at risk."""

    topic: str
    partition: int
    # Worst first; empty only in the view of one topic.
    problems: tuple[str, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    # Never more than the number of replicas.
    min_isr: int

    @property
    def order(self) -> Order:
        """What to sort by: the worst problem, then how many replicas are missing, then the name."""
        return _RANK[self.problems[0]], len(self.isr) - len(self.replicas), self.topic, self.partition


class Summary(msgspec.Struct, frozen=True):
    """Counts of some partitions, and the worst of them."""

    # The next four: numbers of partitions by broker.
    leaders: Mapping[int, int] = {}
    preferred: Mapping[int, int] = {}
    replicas: Mapping[int, int] = {}
    in_sync: Mapping[int, int] = {}
    # Numbers of partitions by problem.
    problems: Mapping[str, int] = {}
    # What the loss of each broker would cost.
    lost: Mapping[int, Loss] = {}
    # The same of each rack.
    lost_racks: Mapping[str, Loss] = {}
    # Partitions with a problem. One that was only created without a spare replica does not count.
    at_risk: int = 0
    # Of a sum, the worst of them, worst first. Of other summaries, all of them.
    rows: tuple[Row, ...] = ()


def facts_of(one: Topic | Slice) -> TopicFacts:
    """Return the facts of a topic, or of the one whose first slice this is."""
    return TopicFacts(_own_min_isr(one.config), one.deletion_waits or one.state != TopicState.created)


def _own_min_isr(config: Mapping[str, str]) -> int | None:
    if MIN_ISR not in config:
        return None
    try:
        return policy_of({MIN_ISR: plainly_written(config[MIN_ISR])}).min_insync_replicas
    except msgspec.ValidationError:
        return None


def summarise(parts: Parts, policy: Policy, racks: Mapping[int, str] = MappingProxyType({})) -> Summary:
    """Summarise partitions. ``policy`` is the cluster's, and ``racks`` has the rack of each broker that has one."""
    every: list[Partition] = []
    # Most partitions are well and have a spare replica, and the page looks at 100,000. A loss only moves their leader.
    moved = Counter[int]()
    stands = Counter[Stand]()
    # A rack may hold several replicas of a partition that is well.
    spreads = Counter[tuple[tuple[str | None, ...], int, int]]()
    problems = Counter[tuple[str, ...]]()
    rows: list[Row] = []
    for (topic, about, _), partitions in parts.items():
        min_isr = policy.min_insync_replicas if about.min_isr is None else about.min_isr
        every += partitions
        for partition in partitions:
            is_well = not about.is_deleting and _is_well(partition)
            if is_well and len(partition.isr) > max(min_isr, 1):
                moved[partition.leader] += 1
                isr = partition.isr
                if racks and partition.leader in isr:
                    spreads[tuple(map(racks.get, isr)), isr.index(partition.leader), min_isr] += 1
                continue
            stand = stand_of(partition, min_isr)
            these = problems_of(partition, stand, about.is_deleting)
            problems[these] += 1
            if not about.is_deleting:
                stands[stand] += 1
            if not is_well:
                rows.append(_row(topic, partition, these, min_isr))
    return Summary(
        *_counted(every),
        Counter(problem for these, number in problems.items() for problem in these * number),
        _losses(stands, moved),
        rack_losses_of(stands, racks, {Spread(*each): number for each, number in spreads.items()}) if racks else {},
        len(rows),
        tuple(rows),
    )


def _counted(every: list[Partition]) -> tuple[Counter[int], Counter[int], Counter[int], Counter[int]]:
    """Count what each broker leads, should lead, holds, and holds in sync."""
    leaders = Counter([partition.leader for partition in every])
    del leaders[NO_LEADER]
    return (
        leaders,
        Counter([partition.replicas[0] for partition in every]),
        Counter(chain.from_iterable([partition.replicas for partition in every])),
        Counter(chain.from_iterable([partition.isr for partition in every])),
    )


def _losses(stands: Mapping[Stand, int], moved: Mapping[int, int]) -> dict[int, Loss]:
    """Return what the loss of each broker would cost. ``moved`` has the leaders that would only move, by broker."""
    lost = losses_of(stands)
    for leader, number in moved.items():
        lost[leader] = lost.get(leader, NO_LOSS).plus(Loss(leaders_moved=number))
    return lost


def _is_well(partition: Partition) -> bool:
    """Return whether nothing is wrong: there is a leader, every replica is in sync, and none is on its way."""
    return (
        len(partition.isr) == len(partition.replicas)
        and partition.leader != NO_LEADER
        and partition.leader_recovery_state != LeaderRecoveryState.RECOVERING
        and not partition.is_reassigning
    )


def problems_of(partition: Partition, stand: Stand, is_deleting: bool) -> tuple[str, ...]:
    """List the problems of a partition that stands so, worst first. Deletion hides all others."""
    if is_deleting:
        return (DELETING,)
    others = (
        len(partition.isr) < len(partition.replicas) - len(partition.adding_replicas),
        partition.leader_recovery_state == LeaderRecoveryState.RECOVERING,
        partition.is_reassigning,
    )
    return stand.risks + tuple(compress((UNDER_REPLICATED, RECOVERING, REASSIGNING), others))


def rows_of(topic: Topic, policy: Policy) -> Iterator[Row]:
    """Yield each partition of a topic as a row, also if it has no problem."""
    min_isr = for_topic(policy, topic.config).min_insync_replicas
    is_deleting = topic.shown_state is not TopicState.created
    for partition in topic.partitions:
        yield _row(topic.topic, partition, problems_of(partition, stand_of(partition, min_isr), is_deleting), min_isr)


def _row(topic: str, partition: Partition, problems: tuple[str, ...], min_isr: int) -> Row:
    return Row(
        topic,
        partition.partition,
        problems,
        partition.leader,
        partition.leader_epoch,
        partition.isr,
        partition.replicas,
        partition.adding_replicas,
        partition.removing_replicas,
        partition.required_isr(min_isr),
    )
