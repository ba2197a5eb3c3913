"""Derive high watermarks from the logs' ends (``Partition.maybeIncrementLeaderHW``, seen from the controller).

A high watermark is the lowest end in the ISR, and of those that are about to join it.
"""

from typing import NamedTuple

from msgspec.structs import replace

from controller_logic import fencing
from controller_logic.batch import Batch
from controller_logic.commit import commit_log_end, commit_watermark, commit_watermark_due, commit_watermarks_due
from controller_logic.fencing import Refusal
from controller_logic.lag import absorbed, forgotten, is_caught_up, leader_end_offset
from controller_logic.replica_machine import online_replicas
from controller_logic.working_topic import WorkingTopic
from state.events import LogEndOffset
from state.ids import NO_EPOCH, NO_LEADER, UNKNOWN_OFFSET
from state.partition import Partition
from state.reason import Reason
from state.rules import AGAIN_RULES


def log_end_offset(batch: Batch, event: LogEndOffset) -> None:
    """Take a replica's log end offset in; what follows from it is decided at the next tick.

    One of another leader epoch than the partition's is passed over: its sender has yet to hear of
    the newer leader, or speaks of one that it outlived. Likewise one of another broker epoch or topic id, where
    these are told.
    """
    broker = fencing.registered(batch, event.broker)
    if broker is None:
        return
    namesake = fencing.of_another_topic(batch, event)
    if namesake is not None:
        batch.recorder.answer_if_asked(*namesake)
        return
    found = fencing.known_partition(batch, event)
    if isinstance(found, Refusal):
        held = batch.state.topic(event.topic)
        field = "topic" if held is None or held.is_deleting else "partition"
        batch.recorder.reject(field, found.message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_asked(*found)
        return
    topic, partition = found
    if partition.removed and any(entry.broker == event.broker for entry in partition.removed):
        batch.recorder.answer_if_asked()
        return
    if event.broker not in partition.replicas:
        message = f"broker {event.broker} holds no replica of {event.topic}-{event.partition}"
        batch.recorder.reject("broker", message, Reason.REQUEST_REFUSED)
        batch.recorder.answer_if_asked("INVALID_REQUEST", message)
        return
    is_of_this_life = event.broker_epoch in (None, broker.broker_epoch)
    if is_of_this_life and event.leader_epoch == partition.leader_epoch:
        after = absorbed(partition, event.broker, event.log_end_offset, batch.state.now_ms)
        commit_log_end(batch, topic, after if batch.state.rules_version < AGAIN_RULES else _told(after, event))
        commit_watermark_due(batch, topic, partition)
    batch.recorder.answer_if_asked()


def _told(partition: Partition, event: LogEndOffset) -> Partition:
    """Note it when a leader begins with less than was committed: it shows no more, so as much again must be said."""
    is_decided = partition.high_watermark_epoch == partition.leader_epoch
    if is_decided or event.broker != partition.leader or event.log_end_offset >= partition.high_watermark:
        return partition
    return replace(partition, high_watermark_epoch=NO_EPOCH)


def forget_log_ends(batch: Batch, broker: int) -> None:
    """Count no more what the former incarnation of ``broker`` told: its log may have lost its end."""
    for topic in batch.state.topics():
        for partition in topic.partitions:
            after = forgotten(partition, broker)
            if after is not None:
                commit_log_end(batch, topic, after)


class Derived(NamedTuple):
    """Hold the high watermark that the log ends allow; ``is_held`` when the ISR alone would allow more."""

    high_watermark: int
    is_held: bool


def derived(partition: Partition, min_isr: int, joiners: tuple[int, ...]) -> Derived | None:
    """Give the high watermark that the log end offsets allow; None when it must stay.

    It needs every ISR member's offset in the current leader epoch, to rise also an ISR of at least
    min.insync.replicas (Kafka 3.9: it stands still below), and never goes back but to the end of a leader
    that has less (``committed_end``). With it standing above every log, nobody could join that leader's
    ISR, so it goes back in however small a one. ``joiners`` hold it at their ends, and take nothing back.
    """
    if partition.leader == NO_LEADER or not partition.log_end_offsets:
        return None
    places = [partition.replicas.index(member) for member in partition.isr]
    for place in places:
        if partition.offset_epochs[place] != partition.leader_epoch:
            return None
    lowest = min([partition.log_end_offsets[place] for place in places])
    if lowest < partition.high_watermark:
        return Derived(lowest, is_held=False) if lowest >= committed_end(partition) else None
    if len(partition.isr) < min(min_isr, len(partition.replicas)):
        return None
    high_watermark = lowest
    for joiner in joiners:
        end = partition.log_end_offsets[partition.replicas.index(joiner)]
        high_watermark = min(high_watermark, max(end, partition.high_watermark))
    return Derived(high_watermark, high_watermark < lowest)


def joiners_of(batch: Batch, partition: Partition) -> tuple[int, ...]:
    """List the replicas that are about to join the ISR: they may, and have caught up with the leader.

    The leader asks for them any moment now. Were the high watermark not to wait for them it might always
    be ahead of them, and they would never get in.
    """
    if len(partition.isr) == len(partition.replicas):
        return ()
    lag_time_max_ms = batch.state.policy.replica_lag_time_max_ms
    joiners = []
    for replica in online_replicas(partition.replicas, partition.replica_states, batch.state.active):
        place = partition.replicas.index(replica)
        if replica not in partition.isr and is_caught_up(partition, place, batch.state.now_ms, lag_time_max_ms):
            joiners.append(replica)
    return tuple(joiners)


def committed_end(partition: Partition) -> int:
    """Say up to which offset the leader holds what was committed: whoever is in sync has that much.

    That is the high watermark, but for a leader that came with less and for which none was derived yet: an
    unclean one, or the last in-sync replica that is back from a crash without the end of its log.
    """
    if partition.high_watermark_epoch == partition.leader_epoch:
        return partition.high_watermark
    end = leader_end_offset(partition)
    return partition.high_watermark if end == UNKNOWN_OFFSET else min(end, partition.high_watermark)


def advance_watermarks(batch: Batch) -> None:
    """Decide, once each, the partitions whose offsets moved since the last tick.

    What a joiner holds is looked at again at the next one: it may lag out by time alone.
    """
    held = set()
    for name, number in sorted(batch.state.watermarks_due):
        topic = batch.state.topic(name)
        if topic is not None and _advance(batch, topic, topic.partitions[number]):
            held.add((name, number))
    commit_watermarks_due(batch, held)


def _advance(batch: Batch, topic: WorkingTopic, partition: Partition) -> bool:
    """Decide one partition's high watermark; return whether a joiner holds it."""
    found = derived(partition, topic.min_isr, joiners_of(batch, partition))
    if found is None:
        return False
    commit_watermark(batch, topic, partition, found.high_watermark)
    return found.is_held
