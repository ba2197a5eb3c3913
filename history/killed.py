"""What would become of each partition if brokers were lost."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from controller_logic.loss import lose
from state.cluster import State
from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER
from state.partition import Partition, TopicState
from state.policy import Policy, for_topic, laid_over
from state.risk import records_at_risk, records_on_one_disk

# Worst first; each partition that is told of has one.
OFFLINE, UNCLEAN, REFUSING_WRITES, MOVED = "offline", "unclean", "refusing_writes", "leader_moved"
EFFECTS = (OFFLINE, UNCLEAN, REFUSING_WRITES, MOVED)


class Hit(NamedTuple):
    """A partition before and after the loss."""

    topic: str
    partition: int
    effect: str
    leader_before: int
    leader: int
    isr_before: tuple[int, ...]
    isr: tuple[int, ...]
    # How many in-sync replicas a write with acks=all needs.
    min_isr: int


class Killed(NamedTuple):
    """What the loss would do, the worst first."""

    hits: list[Hit]
    # How many acknowledged records only one disk would have, and how many an unclean election may lose. None if that is
    # not known, because brokers have not reported log ends.
    records_on_one_disk: int | None
    records_at_risk: int | None


def killed(states: Iterable[State], lost: Collection[int], overrides: Mapping[str, str]) -> Killed:
    """Tell what the loss of brokers would do to partitions, by one state for each shard.

    A smaller ISR that still suffices under the same leader is no harm, and is not listed.
    """
    hits, on_one_disk, at_risk = list[Hit](), list[int | None](), list[int | None]()
    for state in states:
        for one in _changes(state, lost, overrides):
            hits += _hit(one)
            on_one_disk.append(records_on_one_disk(one.after, lost))
            at_risk.append(records_at_risk(one.before, one.after.leader) if one.is_unclean else 0)
    hits.sort(key=lambda hit: (EFFECTS.index(hit.effect), hit.topic, hit.partition))
    return Killed(hits, _sum(on_one_disk), _sum(at_risk))


def _sum(counts: Iterable[int | None]) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count
    return total


class _Change(NamedTuple):
    """A partition before and after the loss."""

    topic: str
    before: Partition
    after: Partition
    min_isr: int
    is_unclean: bool


def _changes(state: State, lost: Collection[int], overrides: Mapping[str, str]) -> Iterator[_Change]:
    outcome = lose(state, lost, Policy(), overrides)
    policy = laid_over(state.cluster.policy, overrides)
    told: defaultdict[str, set[int]] = defaultdict(set)
    unclean = set[tuple[str, int]]()
    for one in outcome.decisions:
        if isinstance(one, LeaderAndIsr):
            told[one.topic].add(one.partition)
            if one.unclean:
                unclean.add((one.topic, one.partition))
    for name, after in outcome.changes.items():
        before = state.topics.get(name)
        if before is None or after is None or after.shown_state is not TopicState.created:
            continue
        min_isr = for_topic(policy, before.config).min_insync_replicas
        for number in sorted(told[name]):
            pair = before.partitions[number], after.partitions[number]
            yield _Change(name, *pair, pair[1].required_isr(min_isr), (name, number) in unclean)


def _hit(one: _Change) -> Iterator[Hit]:
    before, after, min_isr = one.before, one.after, one.min_isr
    effect = MOVED if after.leader != before.leader else None
    if after.leader == NO_LEADER != before.leader:
        effect = OFFLINE
    elif one.is_unclean:
        effect = UNCLEAN
    elif len(after.isr) < min_isr <= len(before.isr) and after.leader != NO_LEADER:
        effect = REFUSING_WRITES
    if effect is not None:
        pairs = (before.leader, after.leader, before.isr, after.isr)
        yield Hit(one.topic, after.partition, effect, *pairs, min_isr)
