"""Bring leaders back to the preferred replicas (``KafkaController.checkAndTriggerAutoLeaderRebalance``).

The problem: how far a broker is out of balance is a count over the whole cluster, and no shard sees the others. The
way around is feedback through the event log:

    tick ─► each shard counts ─► the parts are added up ─► leader_imbalance ─► each shard moves its own leaders
            (check_balance)      one imbalance decision     event, published    (leader_imbalance)
                                                            by the engine

An event log without ``leader_imbalance`` balances nothing. Each count is used once. A count from an earlier check, or
one that comes twice, is ignored.
"""

import hashlib
from collections.abc import Iterator, Mapping

from controller_logic.batch import Batch
from controller_logic.commit import commit_partition
from controller_logic.commit_cluster import NO_CHECK, commit_balance, commit_imbalance
from controller_logic.election import elect_preferred
from controller_logic.partition_machine import led_by
from controller_logic.replica_machine import online_replicas
from controller_logic.working_partitions import Leadership
from controller_logic.working_topic import WorkingTopic
from state.decisions import Imbalance
from state.events import LeaderImbalance
from state.partition import Partition
from state.reason import Reason

# When a new controller makes its first check, as in Kafka.
FIRST_CHECK_MS = 5_000
# About how many leaderships a broker gets back in one round; see ``_is_drawn``.
MOVES_PER_BROKER = 1_000


def schedule_first_check(batch: Batch) -> None:
    """Schedule a new controller's first check for soon, and ignore a count that the former controller asked for."""
    commit_balance(batch, batch.state.now_ms + min(FIRST_CHECK_MS, _interval_ms(batch)), NO_CHECK)


def check_balance(batch: Batch) -> None:
    """Count this shard's partitions per preferred broker, if a check is due."""
    state = batch.state
    next_ms = state.now_ms + _interval_ms(batch)
    if state.balance_due_ms == 0 or state.balance_due_ms > next_ms:
        commit_balance(batch, next_ms, state.imbalance_seq)
    if state.now_ms < state.balance_due_ms or not state.policy.auto_leader_rebalance_enable:
        return
    counts: dict[int, tuple[int, int]] = {}
    for topic in _balanced_topics(batch):
        for _, preferred, leader in topic.partitions.leaderships():
            not_led, all_of_it = counts.get(preferred, (0, 0))
            counts[preferred] = (not_led + (leader != preferred), all_of_it + 1)
    commit_imbalance(batch, next_ms, counts)


def event_of(decision: Imbalance) -> LeaderImbalance:
    """Make the event that brings a merged count back to all shards. The engine publishes it."""
    return LeaderImbalance(
        time_ms=decision.time_ms,
        controller_epoch=decision.controller_epoch,
        checked_seq=decision.seq,
        counts=decision.counts,
    )


def leader_imbalance(batch: Batch, event: LeaderImbalance) -> None:
    """Elect preferred leaders for brokers that are further out of balance than allowed."""
    if event.checked_seq == batch.state.imbalance_seq:
        commit_balance(batch, batch.state.balance_due_ms, NO_CHECK)
        if batch.state.policy.auto_leader_rebalance_enable:
            _elect_preferred_leaders(batch, event)
    batch.recorder.answer_if_requested()


def _elect_preferred_leaders(batch: Batch, event: LeaderImbalance) -> None:
    allowed = batch.state.policy.leader_imbalance_per_broker_percentage
    due = {
        broker: not_led
        for broker, (not_led, all_of_it) in event.counts.items()
        if not_led * 100 > allowed * all_of_it and broker in batch.state.active
    }
    if not due:
        return
    for topic in _balanced_topics(batch):
        for led in topic.partitions.leaderships():
            if led.leader != led.preferred and _is_drawn(due, event.checked_seq, topic, led):
                _elect_preferred_leader(batch, topic, topic.partitions[led.partition])


def _elect_preferred_leader(batch: Batch, topic: WorkingTopic, partition: Partition) -> None:
    online = online_replicas(partition.replicas, partition.replica_states, batch.state.active)
    elected = elect_preferred(partition.replicas, partition.in_sync, online)
    if elected is not None:
        commit_partition(batch, topic, partition, led_by(elected), Reason.LEADER_BALANCE)


def _balanced_topics(batch: Batch) -> Iterator[WorkingTopic]:
    return (topic for topic in batch.state.topics() if not topic.is_queued_for_deletion)


def _is_drawn(due: Mapping[int, int], round_seq: int, topic: WorkingTopic, led: Leadership) -> bool:
    """Return whether a partition is moved in this round.

    A broker may have more leaderships to get back than one round moves. Then each partition draws a lot, which depends
    only on its name and the round. So every shard chooses alike, and needs no other partition for it.
    """
    not_led = due.get(led.preferred)
    if not_led is None or not_led <= MOVES_PER_BROKER:
        return not_led is not None
    name = f"{round_seq}:{topic.topic}:{led.partition}".encode()
    lot = int.from_bytes(hashlib.blake2b(name, digest_size=4).digest())
    return lot * not_led < MOVES_PER_BROKER << 32


def _interval_ms(batch: Batch) -> int:
    return batch.state.policy.leader_imbalance_check_interval_seconds * 1_000
