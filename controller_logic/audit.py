"""Compare what an observed controller decided with what the rules would have decided, and check what must never be.

A prediction begins at the state as it was observed, so a difference never grows: the next operation is compared from
where the cluster really is. Invariants need no prediction.
"""

from collections.abc import Container, Mapping

from msgspec import UNSET

from controller_logic.batch import Batch
from controller_logic.commit_observed import Broken, Difference, commit_divergence, commit_violation
from controller_logic.known_defects import defect_of_divergence, defect_of_violation
from controller_logic.kraft_dialect import ABOUT_ALL_OF_A_BROKER, Scene, first_leader, predicted
from controller_logic.observed_invariants import broken_by
from controller_logic.working_topic import WorkingTopic
from state.divergence import FIELDS
from state.events import Observed
from state.observed_events import Cause
from state.partition import Partition

_NEW = (Cause.topic_created, Cause.partitions_added)
# By topic: numbers of partitions.
_Numbers = Mapping[str, Container[int]]


def scene_of(batch: Batch, event: Observed) -> Scene:
    """Return what predictions about an operation depend on, once its brokers are adopted."""
    broker = _broker_of(event)
    state = batch.state
    return Scene(broker, state.brokers, state.broker_sets, state.has_eligible_leaders)


def _broker_of(event: Observed) -> int | None:
    """Return the broker that an operation is about."""
    evidence, results = event.evidence, event.results
    if evidence is not UNSET and evidence.broker is not UNSET:
        return evidence.broker
    named = [row.broker for row in results.brokers] + list(results.unregistered_brokers)
    return named[0] if len(named) == 1 else None


def check_partition(
    batch: Batch, event: Observed, topic: WorkingTopic, before: Partition | None, after: Partition
) -> None:
    """Record which invariants an observed partition breaks."""
    for invariant, message in broken_by(before, after, batch.state.broker_sets, is_gap=event.cause is Cause.gap):
        broken = Broken(invariant, message, defect_of_violation(invariant, after))
        commit_violation(batch, topic, after, offset=event.offset, broken=broken)


def compare_partition(
    batch: Batch, event: Observed, scene: Scene, topic: WorkingTopic, before: Partition | None, after: Partition
) -> None:
    """Record where an observed partition differs from what the rules would have made of it."""
    if before is not None:
        expected = predicted(event.cause, scene, topic, before, after)
    else:
        expected = first_leader(scene, after) if event.cause in _NEW else None
    for field in FIELDS if expected is not None else ():
        found, wanted = getattr(after, field), getattr(expected, field)
        if found != wanted and (found := _in_any_order(found)) != (wanted := _in_any_order(wanted)):
            difference = Difference(field, found, wanted, defect_of_divergence(event.cause, field, found, wanted))
            rule = event.cause.value
            commit_divergence(batch, topic, after, offset=event.offset, rule=rule, difference=difference)


def audit_rest(batch: Batch, event: Observed, scene: Scene, seen: _Numbers) -> None:
    """Check the partitions of a broker that came or went in which the observed controller changed nothing.

    ``seen`` are the partitions that the event has rows about. The rules that are asked here change nothing twice, so an
    operation in parts is checked with its last part, in the state that it led to. They change nothing either where the
    broker is not in sync and a live one leads.
    """
    broker = scene.broker
    if broker is None or event.cause not in ABOUT_ALL_OF_A_BROKER or event.part + 1 < event.parts:
        return
    live = batch.state.broker_sets.live
    for topic in batch.state.topics():
        seen_here = seen.get(topic.topic, ())
        for partition in topic.partitions.on({broker}):
            is_concerned = partition.leader not in live or broker == partition.leader or broker in partition.isr
            if not is_concerned or broker not in partition.replicas or partition.partition in seen_here:
                continue
            check_partition(batch, event, topic, partition, partition)
            compare_partition(batch, event, scene, topic, partition, partition)


def _in_any_order(value: int | tuple[int, ...]) -> int | tuple[int, ...]:
    """Return the value of a field as it is compared: the order of an ISR means nothing."""
    return tuple(sorted(value)) if isinstance(value, tuple) else value
