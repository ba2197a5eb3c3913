"""Summaries of partitions for the page and the metrics: how many each broker leads, and which ones are at risk.

The problem: a cluster may have more than 100,000 partitions, and a batch may change any of them. The insight: the
summary of one page of the state is small, whatever the page holds, and summaries can be added up. So only changed
pages are read again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from itertools import chain

import msgspec

from state.cluster import Totals, counted
from state.ids import NO_LEADER
from state.partition import LeaderRecoveryState, Partition, TopicState
from state.policy import Policy, policy_of
from state.setting_text import plainly_written
from state.stored.codec import partitions_in
from state.stored.slices import Slice

MIN_ISR = "min.insync.replicas"
# At most this many of a page's worst partitions are kept as rows. The rest are only counted.
ROWS_PER_PAGE_MAX = 200
OFFLINE, UNDER_MIN_ISR, UNDER_REPLICATED = "offline", "under_min_isr", "under_replicated"
# They lack a replica, and after one more failure they refuse writes with acks=all.
AT_MIN_ISR = "at_min_isr"
RECOVERING, REASSIGNING, DELETING = "recovering", "reassigning", "deleting"
# Worst first.
PROBLEMS = (OFFLINE, UNDER_MIN_ISR, AT_MIN_ISR, UNDER_REPLICATED, RECOVERING, REASSIGNING, DELETING)
_RANK = {problem: rank for rank, problem in enumerate(PROBLEMS)}
# The rank of the worst problem, how many replicas are in sync beyond those assigned (≤ 0), and the name.
Order = tuple[int, int, str, int]


class TopicFacts(msgspec.Struct, frozen=True):
    """What the summary of a topic's partitions needs to know of the topic."""

    # None: the topic has no setting of its own.
    min_isr: int | None
    is_deleting: bool


NO_FACTS = TopicFacts(None, False)


class Row(msgspec.Struct, frozen=True, gc=False):
    """A partition at risk."""

    topic: str
    partition: int
    # Worst first; not empty.
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
    # Partitions that have a problem.
    at_risk: int = 0
    # The worst partitions, worst first.
    rows: tuple[Row, ...] = ()


def facts_of(slices: Iterable[Slice]) -> dict[str, TopicFacts]:
    """Return the facts of the topics whose first slice is among ``slices``."""
    return {
        one.topic: TopicFacts(_own_min_isr(one.config), one.deletion_waits or one.state != TopicState.created)
        for one in slices
        if one.first_partition == 0
    }


def _own_min_isr(config: Mapping[str, str]) -> int | None:
    if MIN_ISR not in config:
        return None
    try:
        return policy_of({MIN_ISR: plainly_written(config[MIN_ISR])}).min_insync_replicas
    except msgspec.ValidationError:
        return None


def summarise(slices: Iterable[Slice], facts: Mapping[str, TopicFacts], policy: Policy) -> Summary:
    """Summarise a page. ``facts`` holds the facts of every topic on it; ``policy`` is the cluster's."""
    every: list[Partition] = []
    problems = Counter[str]()
    # Each begins with its order. Most are dropped, so only the kept ones become rows.
    found: list[tuple[Order, tuple[str, ...], Partition, int]] = []
    for one in slices:
        topic, partitions = one.topic, partitions_in(one)
        about = facts.get(topic) or NO_FACTS
        min_isr = policy.min_insync_replicas if about.min_isr is None else about.min_isr
        every += partitions
        for partition in partitions:
            if these := problems_of(partition, min_isr, about.is_deleting):
                problems.update(these)
                order = _RANK[these[0]], len(partition.isr) - len(partition.replicas), topic, partition.partition
                found.append((order, these, partition, min_isr))
    worst = nsmallest(ROWS_PER_PAGE_MAX, found, key=lambda each: each[0])
    return Summary(
        Counter(partition.leader for partition in every if partition.leader != NO_LEADER),
        Counter(partition.replicas[0] for partition in every),
        Counter(chain.from_iterable(partition.replicas for partition in every)),
        Counter(chain.from_iterable(partition.isr for partition in every)),
        problems,
        len(found),
        tuple(_row(order[2], partition, these, min_isr) for order, these, partition, min_isr in worst),
    )


def problems_of(partition: Partition, min_isr: int, is_deleting: bool) -> tuple[str, ...]:
    """List a partition's problems, worst first. Deletion hides all others."""
    if is_deleting:
        return (DELETING,)
    is_recovering = partition.leader_recovery_state == LeaderRecoveryState.RECOVERING
    # Most partitions have every replica in sync, and the page looks at 100,000.
    if len(partition.isr) == len(partition.replicas) and partition.leader != NO_LEADER and not is_recovering:
        return (REASSIGNING,) if partition.is_reassigning else ()
    counts = Totals(0, *counted(partition, min_isr))
    found = (
        (OFFLINE, counts.offline),
        (UNDER_MIN_ISR, counts.under_min_isr),
        (AT_MIN_ISR, counts.at_min_isr and counts.under_replicated and not counts.offline),
        (UNDER_REPLICATED, counts.under_replicated),
        (RECOVERING, is_recovering),
        (REASSIGNING, counts.reassigning),
    )
    return tuple(problem for problem, is_so in found if is_so)


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


def added(summaries: Iterable[Summary], rows_max: int) -> Summary:
    """Add summaries up, and keep the ``rows_max`` worst partitions."""
    leaders, preferred, replicas, in_sync = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
    problems = Counter[str]()
    rows: list[Row] = []
    at_risk = 0
    for one in summaries:
        leaders.update(one.leaders)
        preferred.update(one.preferred)
        replicas.update(one.replicas)
        in_sync.update(one.in_sync)
        problems.update(one.problems)
        at_risk += one.at_risk
        rows += one.rows
    kept = tuple(nsmallest(rows_max, rows, key=lambda row: row.order))
    return Summary(leaders, preferred, replicas, in_sync, problems, at_risk, kept)
