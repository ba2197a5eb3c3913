"""What one shard of the control plane knows: its topics, and what all shards share."""

from collections.abc import Mapping
from operator import add
from typing import Protocol

import msgspec
from msgspec.structs import astuple

from state.acl import Acl
from state.alike import Said, decisions_of
from state.broker import Broker
from state.decisions import AnyDecision
from state.entity import Entity
from state.ids import NO_LEADER, NO_TIME, shard_of, without_collisions
from state.level import FIRST_LEVEL
from state.metadata_quorum import Gateway, Quorum
from state.partition import Partition, Topic
from state.policy import Policy, laid_over
from state.shadow import Shadow


class Totals(msgspec.Struct, frozen=True, array_like=True):
    """A shard's counts of topics and partitions. Topics that are being deleted count in none of them."""

    topics: int = 0
    partitions: int = 0
    replicas: int = 0
    # leader = NO_LEADER
    offline: int = 0
    # |isr| < |replicas| - |adding|
    under_replicated: int = 0
    # |isr| < min.insync.replicas, or |isr| < |replicas| if there are fewer replicas than that
    under_min_isr: int = 0
    # |isr| = that number
    at_min_isr: int = 0
    # leader ≠ NO_LEADER and leader ≠ replicas[0]
    not_preferred: int = 0
    reassigning: int = 0

    def __add__(self, other: "Totals") -> "Totals":
        return Totals(*map(add, astuple(self), astuple(other)))


def counted(partition: Partition, min_isr: int) -> tuple[int, ...]:
    """Count one partition, in the order of ``Totals`` after ``topics``.

    A ``min_isr`` (min.insync.replicas) greater than the number of replicas means all of them.
    """
    in_sync, assigned = len(partition.isr), len(partition.replicas)
    enough = min_isr if min_isr < assigned else assigned
    leader = partition.leader
    is_reassigning = bool(partition.adding_replicas or partition.removing_replicas)
    return (
        1,
        assigned,
        leader == NO_LEADER,
        in_sync < assigned - len(partition.adding_replicas),
        in_sync < enough,
        in_sync == enough,
        NO_LEADER != leader != partition.replicas[0],
        is_reassigning,
    )


class Cluster(msgspec.Struct, frozen=True, array_like=True):
    """The part of the state that is not topics. Unless marked as one shard's, a field is the same in every shard."""

    # 0 ≤ shard < shards
    shard: int = 0
    shards: int = 1
    # The newest event that was applied.
    seq: int = 0
    # The engine's clock: the greatest time_ms of its own events; without has_engine_clock, of any event.
    clock_ms: int = 0
    controller_id: str = ""
    controller_epoch: int = 0
    # The settings that the newest claim brought.
    settings: dict[str, str] = {}
    brokers: dict[int, Broker] = {}
    # The dynamic settings of the cluster, and of each broker by its id.
    config: dict[str, str] = {}
    broker_config: dict[str, dict[str, str]] = {}
    # This shard's partitions, as (topic, partition), whose replicas have reported offsets since the last tick.
    watermarks_due: tuple[tuple[str, int], ...] = ()
    # Of this shard's topics.
    totals: Totals = Totals()
    # This shard's topics whose deletion waits for reassignments, at least one of which has ended.
    deletions_due: tuple[str, ...] = ()
    # When leaders are next counted; 0 if that is not set yet.
    balance_due_ms: int = 0
    # The tick whose count has yet to come back; -1 if there is none.
    imbalance_seq: int = -1
    gateways: dict[int, Gateway] = {}
    quorum: Quorum = Quorum()
    # All producer ids below this one are handed out.
    next_producer_id: int = 0
    # By broker: how many of its replicas in this shard have not completed their newest request.
    backlog: dict[int, int] = {}
    # The bus's time at which the event that set clock_ms arrived.
    clock_entered_ms: int = NO_TIME
    # Whether an engine made the newest claim, so that only its events move the clock.
    has_engine_clock: bool = False
    # The settings that brokers behind gateways act on, as last announced to them.
    in_force: dict[str, str] = {}
    # By id, in its order. Only shard 0 has them.
    acls: dict[str, Acl] = {}
    # By ``entity_id_of``, in its order. Only shard 0 has them.
    entities: dict[str, Entity] = {}
    # What may be written (``state.level``), and the highest level that the job of the newest claim supports.
    level: int = FIRST_LEVEL
    engine_level: int = FIRST_LEVEL
    # What is observed, if nothing is led. From level 2 on.
    shadow: Shadow | None = None
    # This shard's partitions that wait for the logs of crashed members, as (topic, partition, until when). From level 2
    # on.
    recoveries_due: tuple[tuple[str, int, int], ...] = ()

    @property
    def policy(self) -> Policy:
        """The settings in force: the dynamic ones over those of the newest claim.

        What an observed controller told of its file stands between the two.
        """
        claimed = laid_over(Policy(), self.settings)
        return laid_over(laid_over(claimed, self.shadow.static_settings) if self.shadow else claimed, self.config)

    @property
    def has_eligible_leaders(self) -> bool:
        """Whether partitions keep eligible leader replicas (KIP-966)."""
        return self.policy.eligible_leader_replicas_version > 0

    @property
    def clock_skew_ms(self) -> int | None:
        """How far the engine's clock was ahead of the bus's at the newest tick; None if that is not known."""
        return None if self.clock_entered_ms == NO_TIME else self.clock_ms - self.clock_entered_ms

    @property
    def writes_cluster_decisions(self) -> bool:
        """Whether this shard writes what all shards decide alike."""
        return self.shard == 0

    def holds(self, topic: str) -> bool:
        return shard_of(topic, self.shards) == self.shard

    def shown_backlog(self, counts: Mapping[int, int]) -> dict[int, int]:
        """Return the backlog of each registered broker from ``counts``, the sum over all shards.

        Unregistered brokers owe no reports, and neither do brokers behind a gateway.
        """
        brokers = sorted(self.brokers.items())
        return {broker: 0 if held.is_kraft else counts.get(broker, 0) for broker, held in brokers}


# None: the topic is gone.
Changes = Mapping[str, Topic | None]


class Topics(Protocol):
    """A shard's topics by name. A store may load each one on demand."""

    def get(self, topic: str, /) -> Topic | None: ...

    def names(self) -> list[str]:
        """List all names in order."""
        ...

    def twin_of(self, topic: str, /) -> str | None:
        """Find the name that differs from ``topic`` in ``.`` and ``_`` only; there is at most one."""
        ...

    def changed(self, changes: Changes, /) -> "Topics":
        """Return these topics with ``changes`` made."""
        ...


class MappedTopics(dict[str, Topic]):
    """All topics of a shard, in memory. Its content never changes."""

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
    """One shard's state."""

    cluster: Cluster
    topics: Topics


class Outcome(msgspec.Struct, frozen=True):
    """The result of ``step``."""

    state: State
    # The topics that differ from the state before.
    changes: Changes
    said: list[Said]

    @property
    def decisions(self) -> list[AnyDecision]:
        return decisions_of(self.said)
