"""Controlled shutdown: hand over what a broker leads before it stops (``KafkaController.doControlledShutdown``)."""

from msgspec.structs import replace

from controller_logic import fencing, partition_machine
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition, tell_stop_replica
from controller_logic.commit_alike import Alike
from controller_logic.commit_cluster import commit_broker, commit_remaining
from controller_logic.election import elect_away
from controller_logic.replica_machine import online_replicas, states_with_offline
from controller_logic.sessions import with_contact
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker, BrokerState
from state.events import ControlledShutdown
from state.partition import Partition, ReplicaState
from state.reason import Reason

# A replica that a reassignment adds is new until the reassignment ends, and may be in the ISR before that.
_FOLLOWING = (ReplicaState.NewReplica, ReplicaState.OnlineReplica)


def controlled_shutdown(batch: Batch, event: ControlledShutdown) -> None:
    """Have a broker that wants to stop hand over its leaderships. Its request counts as a heartbeat."""
    broker = fencing.in_its_epoch(batch, event.broker, event.broker_epoch)
    if broker is not None:
        broker = with_contact(batch, broker)
        commit_broker(batch, broker)
        ask_shutdown(batch, broker)


def ask_shutdown(batch: Batch, broker: Broker) -> None:
    """Move what ``broker`` leads to other members of the ISR, and record how much could not be moved.

    Each shard does this for its own topics, and the decision has the sum. Asking again retries what remains.
    """
    if not batch.state.policy.controlled_shutdown_enable:
        batch.recorder.answer("INVALID_REQUEST", "controlled.shutdown.enable is false", broker=broker.broker)
        return
    remaining = 0
    if broker.is_live:
        broker = replace(broker, state=BrokerState.controlled_shutdown)
        commit_broker(batch, broker)
        remaining = _hand_over_all(batch, broker.broker)
    commit_remaining(batch, broker, remaining)
    batch.recorder.answer(part=True, broker=broker.broker, broker_epoch=broker.broker_epoch, remaining=remaining)


def _hand_over_all(batch: Batch, broker: int) -> int:
    remaining = 0
    alike = Alike(batch, _hand_over, (broker,))
    for topic in batch.state.topics():
        if topic.is_deleting:
            continue
        for partition in topic.partitions.on({broker}):
            # A partition with one replica cannot move: it stops with its broker.
            if broker in partition.replicas and len(partition.replicas) > 1:
                remaining += alike.commit(topic, partition, broker)
    return remaining


def _hand_over(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> bool:
    """Take a broker out of one partition; return whether it still leads it."""
    if partition.leader == broker:
        online = online_replicas(partition.replicas, partition.replica_states, batch.state.active)
        elected = elect_away(partition.isr, online, elr=partition.elr)
        if elected is None:
            return True
        change = partition_machine.led_by(elected)
        reason = Reason.ELIGIBLE_ELECTION if elected.eligible else Reason.CONTROLLED_SHUTDOWN
        return commit_partition(batch, topic, partition, change, reason).leader == broker
    if partition.replica_states[partition.replicas.index(broker)] in _FOLLOWING:
        _stop_following(batch, topic, partition, broker)
    return False


def _stop_following(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> None:
    gone = frozenset({broker})
    states = states_with_offline(partition, gone)
    keeps_last = not batch.state.has_eligible_leaders
    change = partition_machine.without(partition, gone, states, (), unclean_allowed=False, keeps_last=keeps_last)
    addressed = batch.state.live_replicas(partition, but=gone)
    after = partition
    if change is not None:
        after = commit_partition(batch, topic, partition, change, Reason.CONTROLLED_SHUTDOWN, to=addressed)
    if after.removed != partition.removed:
        # The change ended the reassignment, which already told this broker to stop.
        return
    epoch = after.leader_epoch
    tell_stop_replica(batch, topic, after, Reason.CONTROLLED_SHUTDOWN, leader_epoch=epoch, delete=False, to=(broker,))
