"""What one failure would cost now: the partitions without a spare replica, and each broker and rack by its loss.

An in-sync replica may lead while its broker is active and its log readable. No unclean election is assumed.

    isr 1,2, leader 1, 2 is fenced     1 lost: no leader              one_failure_from_offline
    isr 1,2, min.insync.replicas 2     1 or 2 lost: one is too few    at_min_isr
    isr 1,   min.insync.replicas 2     writes with acks=all fail      refusing_writes
"""

from collections import Counter
from collections.abc import Iterable, Set
from typing import NamedTuple

from state.cluster import Cluster
from state.ids import NO_LEADER
from state.partition import Partition, ReplicaState, Topic, TopicState
from state.policy import for_topic

# Worst first.
OFFLINE, ONE_FROM_OFFLINE = "offline", "one_failure_from_offline"
REFUSING_WRITES, AT_MIN_ISR = "refusing_writes", "at_min_isr"
RISKS = (OFFLINE, REFUSING_WRITES, ONE_FROM_OFFLINE, AT_MIN_ISR)


class Stand(NamedTuple):
    """What decides how a partition bears a loss. Many partitions have the same."""

    leader: int
    isr: tuple[int, ...]
    # The members of the ISR that may lead now.
    eligible: tuple[int, ...]
    # min.insync.replicas, but no more than there are replicas.
    min_isr: int

    @property
    def spare(self) -> int:
        """How many in-sync replicas it can lose before it refuses writes with acks=all; negative if it does."""
        return len(self.isr) - self.min_isr

    @property
    def risks(self) -> tuple[str, ...]:
        """Its risks, worst first. A partition that is offline has no other."""
        if self.leader == NO_LEADER:
            return (OFFLINE,)
        found = (
            (REFUSING_WRITES, self.spare < 0),
            (ONE_FROM_OFFLINE, {*self.eligible} <= {self.leader}),
            (AT_MIN_ISR, self.spare == 0),
        )
        return tuple([risk for risk, is_so in found if is_so])


class Loss(NamedTuple):
    """How many partitions would change if a broker or a rack were lost now."""

    # Those without a leader, and those whose topic allows an unclean election: it would lose records.
    offline: int = 0
    # Those that accept writes now, and would have a leader but too small an ISR.
    refusing_writes: int = 0
    leaders_moved: int = 0


class AtRisk(NamedTuple):
    """A partition with a risk."""

    topic: str
    partition: int
    stand: Stand
    replicas: tuple[int, ...]


class Risk(NamedTuple):
    """The risks of a cluster. Every list has the worst first."""

    # How many partitions have each risk.
    counts: dict[str, int]
    brokers: list[tuple[int, Loss]]
    racks: list[tuple[str, Loss]]
    partitions: list[AtRisk]


def risk_of(cluster: Cluster, topics: Iterable[Topic]) -> Risk:
    """Find what one failure would cost. Topics that are being deleted do not count."""
    active = {broker.broker for broker in cluster.brokers.values() if broker.is_active}
    stands = Counter[Stand]()
    risks: dict[Stand, tuple[str, ...]] = {}
    at_risk: list[AtRisk] = []
    for topic in topics:
        if topic.shown_state is not TopicState.created:
            continue
        min_isr = for_topic(cluster.policy, topic.config).min_insync_replicas
        for partition in topic.partitions:
            stand = stand_of(partition, active, min_isr)
            stands[stand] += 1
            if stand not in risks:
                risks[stand] = stand.risks
            if risks[stand]:
                at_risk.append(AtRisk(topic.topic, partition.partition, stand, partition.replicas))
    at_risk.sort(key=lambda one: (RISKS.index(risks[one.stand][0]), one.stand.spare, one.topic, one.partition))
    counts = Counter(risk for stand, number in stands.items() for risk in risks[stand] * number)
    racks: dict[str, set[int]] = {}
    for broker in cluster.brokers.values():
        if broker.rack is not None:
            racks.setdefault(broker.rack, set()).add(broker.broker)
    by_broker = [(broker, loss_of(stands, {broker})) for broker in sorted(cluster.brokers)]
    by_rack = [(rack, loss_of(stands, members)) for rack, members in sorted(racks.items())]
    by_broker.sort(key=lambda one: one[1], reverse=True)
    by_rack.sort(key=lambda one: one[1], reverse=True)
    return Risk({risk: counts[risk] for risk in RISKS}, by_broker, by_rack, at_risk)


def stand_of(partition: Partition, active: Set[int], min_isr: int) -> Stand:
    """Return how a partition stands while the brokers in ``active`` may lead."""
    eligible = tuple([member for member in partition.in_sync if member in active])
    # Few partitions have an offline replica, and there may be 100,000.
    if eligible and ReplicaState.OfflineReplica in partition.replica_states:
        states = dict(zip(partition.replicas, partition.replica_states, strict=True))
        eligible = tuple([member for member in eligible if states[member] != ReplicaState.OfflineReplica])
    return Stand(partition.leader, partition.isr, eligible, partition.required_isr(min_isr))


def loss_of(stands: Counter[Stand], lost: Set[int]) -> Loss:
    """Count what the loss of the brokers in ``lost`` would change."""
    offline = refusing = moved = 0
    for stand, number in stands.items():
        if stand.leader == NO_LEADER or lost.isdisjoint(stand.isr):
            continue
        isr = [member for member in stand.isr if member not in lost]
        if stand.leader in lost:
            # An election leaves only members that may lead in the ISR.
            isr = [member for member in stand.eligible if member not in lost]
            if not isr:
                offline += number
                continue
            moved += number
        if len(isr) < stand.min_isr <= len(stand.isr):
            refusing += number
    return Loss(offline, refusing, moved)
