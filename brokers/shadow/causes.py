"""Why Kafka's controller wrote what it wrote, as far as records show it.

Each operation of the controller writes its records in an order of its own (``QuorumController`` and what it calls, in
Kafka 3.9 to 4.4), so most causes are certain.
"""

from typing import NamedTuple

from msgspec import UNSET, UnsetType

from brokers.shadow.cluster_image import Broker, Partition
from brokers.wire.schema import Values
from state.ids import NO_LEADER
from state.observed_events import Cause, Certainty

# More than a live broker waits between two fetches of metadata, and less than a session (broker.session.timeout.ms).
SILENT_MS = 2_500
# A broker that fetched so lately was alive, and asked to stop.
ALIVE_MS = 2_000


class Effect(NamedTuple):
    """A partition before and after one record."""

    topic_id: str
    number: int
    before: Partition
    after: Partition
    # Whether the record names a leader.
    names_leader: bool


class Why(NamedTuple):
    """A cause, and what is known of it."""

    cause: Cause
    certainty: Certainty = Certainty.certain
    # The broker that the operation is about, or that asked for it.
    broker: int | UnsetType = UNSET
    silent_ms: int | UnsetType = UNSET
    alternatives: tuple[Cause, ...] = ()


def takes_out(effect: Effect, broker: int) -> bool:
    """Return whether a change is one that the loss of ``broker`` makes.

    The broker leaves the ISR, or stays in it as its last member and leads no more, or leaves the ELR.
    """
    before, after = effect.before, effect.after
    if broker in before.isr:
        return after.leader != broker and (broker not in after.isr or after.leader == NO_LEADER)
    return broker in before.elr and broker not in after.elr and before.isr == after.isr


def why_fenced(broker: Broker, led: bool, silent_ms: int | None) -> Why:
    """Return why a broker was fenced. ``silent_ms`` is how long it had not fetched, if that was seen."""
    seen = UNSET if silent_ms is None else silent_ms
    if broker.is_fenced:
        return Why(Cause.stopped_session_ended, broker=broker.broker)
    if broker.is_shutting_down:
        return Why(Cause.shutdown_complete, Certainty.likely, broker.broker, seen, (Cause.session_expired,))
    if led:
        # Kafka lets a broker stop at once only if it leads nothing, so this one did not ask.
        return Why(Cause.session_expired, broker=broker.broker, silent_ms=seen)
    if silent_ms is not None and silent_ms >= SILENT_MS:
        return Why(Cause.session_expired, Certainty.likely, broker.broker, silent_ms)
    if silent_ms is not None and silent_ms < ALIVE_MS:
        return Why(Cause.shutdown_complete, Certainty.likely, broker.broker, silent_ms)
    others = (Cause.session_expired, Cause.shutdown_complete)
    return Why(Cause.session_or_shutdown, Certainty.open, broker.broker, seen, others)


def why_alone(effect: Effect) -> Why:
    """Name the operation that writes such a change without a record of something else beside it."""
    before, after = effect.before, effect.after
    if (before.replicas, before.adding, before.removing) != (after.replicas, after.adding, after.removing):
        return _why_moved(before, after)
    if after.is_recovering and not before.is_recovering:
        return Why(Cause.unclean_election)
    if before.is_recovering and not after.is_recovering:
        return Why(Cause.leader_recovered, broker=_leader(before))
    if effect.names_leader and after.leader != before.leader and set(before.isr) == set(after.isr):
        if after.replicas[:1] == (after.leader,):
            # An admin asked (ElectLeaders), or the controller balances (auto.leader.rebalance.enable).
            return Why(Cause.preferred_election, Certainty.likely)
        return Why(Cause.other, Certainty.open)
    if set(after.isr) < set(before.isr):
        return Why(Cause.isr_shrunk, broker=_leader(before))
    if set(after.isr) > set(before.isr):
        return Why(Cause.isr_expanded, broker=_leader(before))
    if before.directories != after.directories:
        return Why(Cause.replica_placed)
    return Why(Cause.other, Certainty.open)


def _why_moved(before: Partition, after: Partition) -> Why:
    was_moving = bool(before.adding or before.removing)
    if after.adding or after.removing:
        return Why(Cause.reassignment_began)
    if not was_moving:
        return Why(Cause.reassignment_done_at_once)
    if set(before.adding) <= set(after.replicas) and not set(before.removing) & set(after.replicas):
        # The leader asked for an ISR that has all new replicas.
        return Why(Cause.reassignment_ended, broker=_leader(before))
    return Why(Cause.reassignment_cancelled)


def _leader(partition: Partition) -> int | UnsetType:
    return UNSET if partition.leader == NO_LEADER else partition.leader


def is_elected(effect: Effect) -> bool:
    """Return whether a change is one that a broker's return makes: its partition had no leader."""
    return effect.before.leader == NO_LEADER


def why_registered(before: Broker | None, values: Values, has_effects: bool) -> Why:
    """Return why a broker registered. ``before`` is its registration so far."""
    is_new_process = before is not None and before.incarnation != values["IncarnationId"]
    cause = Cause.unclean_restart if is_new_process and has_effects else Cause.broker_registered
    return Why(cause, broker=values["BrokerId"])
