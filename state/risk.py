"""What one failure would cost now: the partitions without a spare replica, and each broker and rack by its loss.

An in-sync replica may lead while it is online: its broker serves, and its log can be read. So may an eligible leader
replica (KIP-966) if no in-sync one is left. No unclean election is assumed. A partition is at min ISR exactly if its
ISR has min.insync.replicas members, as Kafka's AtMinIsrPartitionCount counts it, even if no replica is missing.

    isr 1,2, leader 1, 2 is offline    1 lost: no leader              one_failure_from_offline
    isr 1,2, min.insync.replicas 2     1 or 2 lost: one is too few    at_min_isr
    isr 1,   min.insync.replicas 2     writes with acks=all fail      under_min_isr
    isr 1, elr 2, 2 is online          1 lost: 2 leads                under_min_isr only
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import Generic, NamedTuple, TypeVar

from state.broker import Broker
from state.cluster import Cluster
from state.ids import NO_LEADER, UNKNOWN_OFFSET
from state.partition import Partition, ReplicaState, Topic, TopicState
from state.policy import for_topic

Lost = TypeVar("Lost", int, str)

# Worst first.
OFFLINE, ONE_FROM_OFFLINE = "offline", "one_failure_from_offline"
UNDER_MIN_ISR, AT_MIN_ISR = "under_min_isr", "at_min_isr"
RISKS = (OFFLINE, UNDER_MIN_ISR, ONE_FROM_OFFLINE, AT_MIN_ISR)


class Stand(NamedTuple):
    """What decides how a partition bears a loss. Many partitions have the same."""

    leader: int
    isr: tuple[int, ...]
    # The members of the ISR that may lead now.
    eligible: tuple[int, ...]
    # min.insync.replicas, but no more than there are replicas.
    min_isr: int
    # The eligible leader replicas that may lead now.
    elr: tuple[int, ...] = ()

    @property
    def spare(self) -> int:
        """How many in-sync replicas it can lose before it refuses writes with acks=all; negative if it does."""
        return len(self.isr) - self.min_isr

    @property
    def risks(self) -> tuple[str, ...]:
        """Its risks, worst first."""
        is_offline, spare = self.leader == NO_LEADER, self.spare
        is_last = not is_offline and {*self.eligible, *self.elr} <= {self.leader}
        return tuple(compress(RISKS, (is_offline, spare < 0, is_last, spare == 0)))


class Loss(NamedTuple):
    """How many partitions would change if a broker or a rack were lost now."""

    # They would have no leader, or an unclean election would lose records.
    offline: int = 0
    # They accept writes now, and would have a leader but too small an ISR.
    refusing_writes: int = 0
    leaders_moved: int = 0

    def plus(self, other: "Loss", times: int = 1) -> "Loss":
        """Add another loss so many times."""
        return Loss(*[mine + times * its for mine, its in zip(self, other, strict=True)])


NO_LOSS = Loss()


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


class _Alike:
    """Partitions that stand alike."""

    __slots__ = ("count", "risks", "stand")

    def __init__(self, stand: Stand) -> None:
        self.stand = stand
        self.risks = stand.risks
        self.count = 0


# The leader, the ISR, how many replicas there are, and min.insync.replicas; or the stand itself.
_Key = tuple[int, tuple[int, ...], int, int] | Stand


def risk_of(cluster: Cluster, topics: Iterable[Topic]) -> Risk:
    """Find what one failure would cost. Topics that are being deleted do not count."""
    found: dict[_Key, _Alike] = {}
    at_risk: list[AtRisk] = []
    policy, leaving, offline = cluster.policy, leaving_of(cluster.brokers), ReplicaState.OfflineReplica
    for topic in topics:
        if topic.shown_state is not TopicState.created:
            continue
        min_isr = for_topic(policy, topic.config).min_insync_replicas
        for partition in topic.partitions:
            isr, states = partition.isr, partition.replica_states
            # Few partitions have more that their stand depends on, and there may be 100,000.
            is_plain = not (partition.elr or partition.lost_logs or offline in states)
            stand = None if is_plain else stand_of(partition, min_isr, leaving)
            key = stand or (partition.leader, isr, len(states), min_isr)
            alike = found.get(key)
            if alike is None:
                alike = found[key] = _Alike(stand or stand_of(partition, min_isr, leaving))
            alike.count += 1
            if alike.risks:
                at_risk.append(AtRisk(topic.topic, partition.partition, alike.stand, partition.replicas))
    stands, counts = Counter[Stand](), Counter[str]()
    for alike in found.values():
        stands[alike.stand] += alike.count
        counts.update(dict.fromkeys(alike.risks, alike.count))
    ranks = {alike.stand: (RISKS.index(alike.risks[0]), alike.stand.spare) for alike in found.values() if alike.risks}
    at_risk.sort(key=lambda one: (ranks[one.stand], one.topic, one.partition))
    racks = racks_of(cluster.brokers)
    by_broker, by_rack = losses_of(stands), rack_losses_of(stands, racks)
    return Risk(
        {risk: counts[risk] for risk in RISKS},
        worst_first({broker: by_broker.get(broker, NO_LOSS) for broker in cluster.brokers}),
        worst_first({rack: by_rack.get(rack, NO_LOSS) for rack in racks.values()}),
        at_risk,
    )


def racks_of(brokers: Mapping[int, Broker]) -> dict[int, str]:
    """Return the rack of each broker that has one."""
    return {number: broker.rack for number, broker in brokers.items() if broker.rack is not None}


def worst_first(losses: Mapping[Lost, Loss]) -> list[tuple[Lost, Loss]]:
    """Sort losses, the worst first."""
    return sorted(sorted(losses.items()), key=lambda one: one[1], reverse=True)


def leaving_of(brokers: Mapping[int, Broker]) -> frozenset[int]:
    """Return the brokers that shut down. They lead nothing more, though their replicas are still online."""
    return frozenset(number for number, broker in brokers.items() if broker.is_live and not broker.is_active)


def stand_of(partition: Partition, min_isr: int, leaving: frozenset[int] = frozenset()) -> Stand:
    """Return how a partition stands. ``min_isr`` is min.insync.replicas, and ``leaving`` the brokers that shut down."""
    eligible, elr = partition.in_sync, partition.elr
    if elr and leaving:
        elr = tuple([member for member in elr if member not in leaving])
    # Few partitions have an offline replica, and there may be 100,000.
    if (eligible or elr) and ReplicaState.OfflineReplica in partition.replica_states:
        states = zip(partition.replicas, partition.replica_states, strict=True)
        offline = [replica for replica, state in states if state == ReplicaState.OfflineReplica]
        eligible = tuple([member for member in eligible if member not in offline])
        elr = tuple([member for member in elr if member not in offline])
    return Stand(partition.leader, partition.isr, eligible, partition.required_isr(min_isr), elr)


def losses_of(stands: Mapping[Stand, int]) -> dict[int, Loss]:
    """Count what the loss of each broker would change. A broker whose loss changes nothing may be left out."""
    tally = _Tally[int]()
    for stand, number in stands.items():
        # An observed controller may have a leader outside the ISR, of which no loss can be foretold.
        if stand.leader in stand.isr:
            tally.add(stand, stand.isr, stand.elr, number)
    return tally.losses()


class Spread(NamedTuple):
    """How a partition whose ISR may lead is spread over racks. Many partitions have the same, on whatever brokers."""

    # Of each member of the ISR; None for a broker without one.
    racks: tuple[str | None, ...]
    # The leader's place in the ISR.
    leader: int
    min_isr: int


def rack_losses_of(
    stands: Mapping[Stand, int], racks: Mapping[int, str], spreads: Mapping[Spread, int] = MappingProxyType({})
) -> dict[str, Loss]:
    """Count what the loss of each rack would change. ``racks`` has the rack of each broker."""
    tally = _Tally[str]()
    for spread, number in spreads.items():
        isr = tuple(range(len(spread.racks)))
        tally.add(Stand(spread.leader, isr, isr, spread.min_isr), spread.racks, (), number)
    for stand, number in stands.items():
        if stand.leader in stand.isr:
            in_sync, elr = ([racks.get(member) for member in members] for members in (stand.isr, stand.elr))
            tally.add(stand, in_sync, elr, number)
    return tally.losses()


class _Tally(Generic[Lost]):
    """Losses as they are counted. Most partitions have spare replicas, so most losses only move leaders."""

    def __init__(self) -> None:
        self._offline: Counter[Lost] = Counter()
        self._refusing: Counter[Lost] = Counter()
        self._moved: Counter[Lost] = Counter()

    def add(self, stand: Stand, places: Sequence[Lost | None], of_elr: Sequence[Lost | None], number: int) -> None:
        """Count ``number`` partitions with a leader.

        ``places`` has what each member of the ISR is lost with, and ``of_elr`` what each eligible replica is.
        """
        isr, min_isr = stand.isr, stand.min_isr
        home = places[isr.index(stand.leader)]
        if len(isr) > max(min_isr, 1) and stand.eligible == isr and len(set(places)) == len(isr):
            if home is not None:
                self._moved[home] += number
            return
        for place in set(places):
            if place is None:
                continue
            # An election leaves only members that may lead in the ISR.
            members = stand.eligible if place == home else isr
            left = sum(1 for member in members if places[isr.index(member)] != place)
            if place == home and not left:
                if all(one == place for one in of_elr):
                    self._offline[place] += number
                    continue
                # An eligible replica leads alone.
                left = 1
            self._moved[place] += number * (place == home)
            self._refusing[place] += number * (left < min_isr <= len(isr))

    def losses(self) -> dict[Lost, Loss]:
        places = self._offline.keys() | self._refusing.keys() | self._moved.keys()
        return {place: Loss(self._offline[place], self._refusing[place], self._moved[place]) for place in places}


def records_on_one_disk(partition: Partition, lost: Collection[int]) -> int | None:
    """Return how many acknowledged records only the last in-sync replica has while ``lost`` are away.

    None if that is not known, because no replica has reported the end of its log.
    """
    if len(partition.isr) != 1:
        return 0
    if not partition.log_end_offsets:
        return None
    ends = dict(zip(partition.replicas, partition.log_end_offsets, strict=True))
    held = min(partition.high_watermark, ends[partition.isr[0]])
    away = {*lost, *partition.isr}
    return max(0, held - max([0, *(end for replica, end in ends.items() if replica not in away)]))


def records_at_risk(partition: Partition, leader: int) -> int | None:
    """Return how many records of the ISR an unclean election of ``leader`` may lose; None if that is not known.

    A member of the ISR has reported them, and ``leader`` has not. Brokers behind a gateway report none.
    """
    ends = dict(zip(partition.replicas, partition.log_end_offsets, strict=False))
    known = max([partition.high_watermark, *(ends.get(member, UNKNOWN_OFFSET) for member in partition.isr)])
    return max(0, known - max(0, ends.get(leader, UNKNOWN_OFFSET))) if ends else None
