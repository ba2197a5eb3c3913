"""What would become of each partition if brokers were lost."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from controller_logic.loss import lose
from state.cluster import State
from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER
from state.partition import Partition, Topic, TopicState
from state.policy import Policy, for_topic, laid_over

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


def killed(states: Iterable[State], lost: Collection[int], overrides: Mapping[str, str]) -> list[Hit]:
    """List what the loss of brokers would do to partitions, by one state for each shard, worst first.

    A smaller ISR that still suffices under the same leader is no harm, and is not listed.
    """
    hits = [hit for state in states for hit in _hits(state, lost, overrides)]
    return sorted(hits, key=lambda hit: (EFFECTS.index(hit.effect), hit.topic, hit.partition))


def _hits(state: State, lost: Collection[int], overrides: Mapping[str, str]) -> Iterator[Hit]:
    outcome = lose(state, lost, Policy(), overrides)
    policy = laid_over(state.cluster.policy, overrides)
    told = [one for one in outcome.decisions if isinstance(one, LeaderAndIsr)]
    unclean = {(one.topic, one.partition) for one in told if one.unclean}
    for name, after in outcome.changes.items():
        before = state.topics.get(name)
        if before is None or after is None or after.shown_state is not TopicState.created:
            continue
        for number in sorted({one.partition for one in told if one.topic == name}):
            pair = before.partitions[number], after.partitions[number]
            yield from _hit(before, *pair, policy, is_unclean=(name, number) in unclean)


def _hit(topic: Topic, before: Partition, after: Partition, policy: Policy, *, is_unclean: bool) -> Iterator[Hit]:
    min_isr = after.required_isr(for_topic(policy, topic.config).min_insync_replicas)
    effect = MOVED if after.leader != before.leader else None
    if after.leader == NO_LEADER != before.leader:
        effect = OFFLINE
    elif is_unclean:
        effect = UNCLEAN
    elif len(after.isr) < min_isr <= len(before.isr) and after.leader != NO_LEADER:
        effect = REFUSING_WRITES
    if effect is not None:
        pairs = (before.leader, after.leader, before.isr, after.isr)
        yield Hit(topic.topic, after.partition, effect, *pairs, min_isr)
