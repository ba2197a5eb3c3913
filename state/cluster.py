"""What one shard of the control plane knows: the brokers, which all shards share, and its topics."""

from collections.abc import Mapping
from typing import Protocol

import msgspec

from state.broker import Broker
from state.decisions import AnyDecision
from state.ids import NO_LEADER, NO_TIME, shard_of, without_collisions
from state.metadata_quorum import Gateway, Quorum
from state.partition import Partition, Topic
from state.rules import FIRST_RULES

STATE_VERSION = 1


class Totals(msgspec.Struct, frozen=True, array_like=True):
    """Count a shard's topics and partitions, kept up with each change.

    ``offline`` have no leader, ``under_replicated`` fewer in sync than assigned, ``not_preferred`` a
    leader that is not the first assigned; topics that are being deleted count in none of these.
    """

    topics: int = 0
    partitions: int = 0
    replicas: int = 0
    offline: int = 0
    under_replicated: int = 0
    under_min_isr: int = 0
    at_min_isr: int = 0
    not_preferred: int = 0
    reassigning: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return _sum(self, other, 1)

    def __sub__(self, other: "Totals") -> "Totals":
        return _sum(self, other, -1)


def _sum(one: Totals, other: Totals, sign: int) -> Totals:
    mine, theirs = msgspec.structs.astuple(one), msgspec.structs.astuple(other)
    return Totals(*(a + sign * b for a, b in zip(mine, theirs, strict=True)))


def counted(partition: Partition, min_isr: int) -> tuple[int, ...]:
    """Count one partition, in the order of ``Totals`` after ``topics``.

    ``min_isr`` is min.insync.replicas; more than there are replicas asks for all of them.
    """
    in_sync, assigned = len(partition.isr), len(partition.replicas)
    enough = min_isr if min_isr < assigned else assigned
    leader = partition.leader
    moves = bool(partition.adding_replicas or partition.removing_replicas)
    return (
        1,
        assigned,
        leader == NO_LEADER,
        in_sync < assigned - len(partition.adding_replicas),
        in_sync < enough,
        in_sync == enough,
        NO_LEADER != leader != partition.replicas[0],
        moves,
    )


class Cluster(msgspec.Struct, frozen=True, array_like=True):
    """Hold the part of the state that every shard has whole.

    ``seq`` is the last event taken in, ``clock_ms`` the greatest ``time_ms`` so far. ``watermarks_due`` lists
    the (topic, partition) of this shard whose replicas reported offsets since the last tick, and
    ``deletions_due`` its topics whose deletion waits for reassignments one of which has ended. ``balance_due_ms`` is
    when leaders are next counted (0: not set yet), ``imbalance_seq`` the tick whose count has yet to come back
    (-1: none). ``backlog`` counts for each broker the replicas in this shard whose newest request is not completed.
    ``rules_version`` is that of the newest claim. From version 2 on ``clock_ms`` is that of the engine's own events
    so far, the newest of which reached the bus when that read ``clock_entered_ms``.
    ``in_force`` are the settings that brokers behind gateways were last told to act on.
    """

    version: int = STATE_VERSION
    shard: int = 0
    shards: int = 1
    seq: int = 0
    clock_ms: int = 0
    controller_id: str = ""
    controller_epoch: int = 0
    settings: dict[str, str] = {}
    brokers: dict[int, Broker] = {}
    config: dict[str, str] = {}
    broker_config: dict[str, dict[str, str]] = {}
    watermarks_due: tuple[tuple[str, int], ...] = ()
    totals: Totals = Totals()
    deletions_due: tuple[str, ...] = ()
    balance_due_ms: int = 0
    imbalance_seq: int = -1
    gateways: dict[int, Gateway] = {}
    quorum: Quorum = Quorum()
    next_producer_id: int = 0
    backlog: dict[int, int] = {}
    rules_version: int = FIRST_RULES
    clock_entered_ms: int = NO_TIME
    in_force: dict[str, str] = {}

    @property
    def writes_cluster_decisions(self) -> bool:
        """Say whether this shard is the one that writes what all shards decide alike."""
        return self.shard == 0

    def holds(self, topic: str) -> bool:
        """Say whether ``topic`` belongs to this shard."""
        return shard_of(topic, self.shards) == self.shard

    def shown_backlog(self, counts: Mapping[int, int]) -> dict[int, int]:
        """Give each registered broker's backlog of ``counts``, which are those of all shards together.

        Of who is unregistered nothing is awaited, nor of who went behind a gateway: it reports no more.
        """
        brokers = sorted(self.brokers.items())
        return {broker: 0 if held.behind_gateway else counts.get(broker, 0) for broker, held in brokers}


Changes = Mapping[str, Topic | None]


class Topics(Protocol):
    """Give topics by name; a shard's store may load them only when asked."""

    def get(self, topic: str, /) -> Topic | None: ...

    def names(self) -> list[str]:
        """List all names in order."""
        ...

    def twin_of(self, topic: str, /) -> str | None:
        """Find the name that is ``topic``'s but for ``.`` and ``_``; there is one at most."""
        ...

    def changed(self, changes: Changes, /) -> "Topics":
        """Return these topics with some put in place, and those that are None gone."""
        ...


class MappedTopics(dict[str, Topic]):
    """Hold all topics in memory; what it holds never changes."""

    _by_unified_name: dict[str, str] | None = None

    def names(self) -> list[str]:
        return sorted(self)

    def twin_of(self, topic: str, /) -> str | None:
        if self._by_unified_name is None:
            self._by_unified_name = {without_collisions(name): name for name in self}
        return self._by_unified_name.get(without_collisions(topic))

    def changed(self, changes: Changes, /) -> "MappedTopics":
        if not changes:
            return self
        merged = MappedTopics(self)
        for name, topic in changes.items():
            if topic is None:
                merged.pop(name, None)
            else:
                merged[name] = topic
        return merged


class State(msgspec.Struct, frozen=True):
    """Hold one shard's state."""

    cluster: Cluster
    topics: Topics


class Outcome(msgspec.Struct, frozen=True):
    """What ``step`` gives: the state after, which topics changed (None: gone), and the decisions."""

    state: State
    changes: Changes
    decisions: list[AnyDecision]
