"""Commit what an observed controller decided: keep, count, record. There is nothing to settle, and no epoch to raise.

Nothing is withheld either, because it has happened.
"""

from typing import NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from controller_logic.batch import Batch
from controller_logic.candidates import passed_over
from controller_logic.observed_reasons import is_unclean
from controller_logic.replica_machine import ReplicaStates
from controller_logic.working_topic import WorkingTopic
from state.decisions import Divergence, Violation
from state.partition import Partition, TopicState
from state.reason import Reason


class Difference(NamedTuple):
    """A field of a partition in which the rules differ from the observed controller."""

    field: str
    observed: int | tuple[int, ...]
    predicted: int | tuple[int, ...]
    # The known defect that it looks like.
    defect: str | UnsetType = UNSET


class Broken(NamedTuple):
    """An invariant that a partition breaks, and what is wrong."""

    invariant: str
    message: str
    # The known defect that it looks like.
    defect: str | UnsetType = UNSET


def commit_observed_partition(
    batch: Batch, topic: WorkingTopic, before: Partition | None, after: Partition, reason: Reason
) -> None:
    """Commit a partition as the observed controller left it. No broker is told."""
    if before is None:
        topic.append(after)
        batch.state.totals.add_partition(topic, after)
    else:
        topic.put(after)
        batch.state.totals.change(topic, before, after)
    over, unclean = None, is_unclean(before, after)
    if before is not None and before.leader != after.leader:
        over = passed_over(before.isr, after, batch.state.brokers, unclean=unclean)
    batch.recorder.say_leader_and_isr(
        topic, after, reason, to=(), is_new=before is None, unclean=unclean, passed_over=over
    )


def commit_replica_states(topic: WorkingTopic, partition: Partition, states: ReplicaStates) -> None:
    """Commit which replicas of a partition are online. The partition itself is as before, so no decision follows."""
    topic.put(replace(partition, replica_states=states))


def commit_topic_gone(batch: Batch, topic: WorkingTopic, reason: Reason, *, is_told: bool = True) -> None:
    """Commit that a topic is gone. It is not told if the same event brings another topic of its name."""
    batch.state.totals.take_out(topic)
    topic.put_state(TopicState.deleted, deletion_waits=False)
    if is_told:
        batch.recorder.say_topic(topic, reason)
    batch.state.remove_topic(topic)


def commit_row_left_out(batch: Batch, topic: str, partition: int, message: str) -> None:
    """Record that a row about a partition was left out."""
    batch.recorder.say_row_left_out(topic, partition, message)


def commit_divergence(
    batch: Batch, topic: WorkingTopic, partition: Partition, *, offset: int, rule: str, difference: Difference
) -> None:
    """Record that the rules would have decided otherwise."""
    batch.recorder.say_of_partition(
        Divergence, Reason.RULES_DIFFER, topic, partition, offset=offset, rule=rule, **difference._asdict()
    )


def commit_violation(batch: Batch, topic: WorkingTopic, partition: Partition, *, offset: int, broken: Broken) -> None:
    """Record that an invariant does not hold."""
    batch.recorder.say_of_partition(
        Violation, Reason.INVARIANT_VIOLATED, topic, partition, offset=offset, **broken._asdict()
    )
