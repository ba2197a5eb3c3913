"""The chain of events and decisions that made a partition what it is."""

from collections.abc import Iterator
from typing import NamedTuple

from bus.interface import Bus
from history.about import decisions_about
from history.reach import BeyondReachError, oldest_seq
from history.state_at import state_at
from state import decisions as d
from state.ids import NO_EPOCH, NO_LEADER, NO_TIME
from state.partition import TopicState
from state.reason import Reason

SEQS_PER_READ = 256
# The chain ends after this many seqs, even if it has fewer changes than were asked for.
SEQS_READ_MAX = 10_000
_EVENT_BYTES_MAX = 1


class Step(NamedTuple):
    """One event of the chain, and what it led to."""

    seq: int
    # The event's text; None if retention removed it.
    raw: bytes | None
    # About the partition, and about brokers whose change caused that. Never empty.
    decisions: list[d.AnyDecision]

    @property
    def change(self) -> d.LeaderAndIsr | None:
        """The decision that says how the partition stands after this event; None if no decision does."""
        return next((one for one in self.decisions if isinstance(one, d.LeaderAndIsr)), None)


class Chain(NamedTuple):
    """The steps that led to a partition as of some seq, oldest first."""

    steps: list[Step]
    # The partition before the first step; None if that is not known, or if the partition was new.
    before: d.LeaderAndIsr | None
    # Whether the chain begins where the partition does.
    is_whole: bool
    # Whether the bus has older steps, which were not asked for or not read.
    has_older: bool
    # The oldest decision on the bus, if the chain goes back that far and its beginning was not found.
    oldest_seq: int | None = None
    # Whether older steps were left out because SEQS_READ_MAX seqs had been read.
    is_cut: bool = False

    @property
    def last(self) -> d.LeaderAndIsr | None:
        """The decision that says how the partition stands after the last step; None if none is known."""
        return next((step.change for step in reversed(self.steps) if step.change is not None), self.before)


def chain_of(bus: Bus, topic: str, partition: int, through: int, changes_max: int, first: int = 0) -> Chain:
    """Return the newest ``changes_max`` changes of a partition from the seq ``first`` through ``through``.

    The refusals are among them.

    The chain goes back to where the topic of this name was last created, and no further. Raises ``CodecError``.
    """
    steps: list[Step] = []
    changes = 0
    for count, seq in enumerate(_seqs(bus, topic, partition, through)):
        if count == SEQS_READ_MAX:
            before = _as_a_decision(bus, topic, partition, through) if changes == 0 else None
            return Chain(steps[::-1], before, is_whole=False, has_older=True, is_cut=True)
        decisions = decisions_about(bus, topic, partition, seq)
        if not decisions:
            continue
        entry = bus.recorded(seq - 1, seq, 1, _EVENT_BYTES_MAX)
        step = Step(seq, entry[0].raw if entry else None, decisions)
        if step.change is not None and (changes == changes_max or seq < first):
            return Chain(steps[::-1], step.change, is_whole=False, has_older=True)
        if seq < first:
            continue
        steps.append(step)
        changes += step.change is not None
        if _is_origin(step):
            return Chain(steps[::-1], None, is_whole=True, has_older=False)
    return Chain(steps[::-1], None, is_whole=False, has_older=False, oldest_seq=oldest_seq(bus))


def _is_origin(step: Step) -> bool:
    for one in step.decisions:
        if isinstance(one, d.TopicDecision) and one.state == "created":
            return True
        if isinstance(one, d.LeaderAndIsr) and one.is_new and one.reason == "PARTITIONS_CREATED":
            return True
    return False


def _seqs(bus: Bus, topic: str, partition: int, through: int) -> Iterator[int]:
    """Yield the seqs to look at, newest first."""
    before = through + 1
    while True:
        found = bus.seqs_about(topic, partition, before, SEQS_PER_READ)
        yield from found
        if len(found) < SEQS_PER_READ:
            return
        before = found[-1]


def _as_a_decision(bus: Bus, topic: str, partition: int, seq: int) -> d.LeaderAndIsr | None:
    """Return a partition in the state as of ``seq`` as a decision; None if it is not there or cannot be rebuilt."""
    try:
        topics = state_at(bus, seq).topics()
    except BeyondReachError:
        return None
    held = next((one for one in topics if one.topic == topic), None)
    if held is None or partition >= len(held.partitions):
        return None
    # A state does not name the rule that led to it. Only whether the topic is being deleted matters here.
    reason = Reason.TOPIC_CREATED if held.state is TopicState.created else Reason.TOPIC_DELETED
    placed = held.partitions[partition]
    return d.leader_and_isr_of(
        topic, held.topic_id, placed, seq=seq, controller_epoch=NO_EPOCH, time_ms=NO_TIME, reason=reason, to=()
    )


def offline_since(chain: Chain) -> Step | None:
    """Return the step that left the partition without a leader, if it has none now."""
    since = None
    for step in chain.steps:
        if step.change is not None:
            is_offline = step.change.leader == NO_LEADER
            since = (since or step) if is_offline else None
    return since
