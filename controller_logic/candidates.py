"""Why an election passed a replica over.

An election goes through the assigned replicas in order and takes the first one without an obstacle. A decision names
the obstacles of all replicas before that one. If no replica was elected, or the election was unclean, every replica had
an obstacle, so it names them all.

    replicas   1  2  3  4     1 is fenced, 2 is not in sync
    elected          3        passed over: 1 BROKER_FENCED, 2 NOT_IN_SYNC
"""

from collections.abc import Mapping

from state.broker import Broker, BrokerState
from state.obstacle import Obstacle
from state.partition import Partition, ReplicaState


def passed_over(
    isr: tuple[int, ...],
    after: Partition,
    brokers: Mapping[int, Broker],
    *,
    unclean: bool,
    lost_logs: tuple[int, ...] = (),
) -> dict[int, str]:
    """Return the obstacle of each replica that an election from ``isr`` passed over, which led to ``after``.

    The replicas are in order of assignment. An election that takes the first replica passes none over. ``lost_logs``
    are the replicas without their log before the election.
    """
    found: dict[int, str] = {}
    for replica, state in zip(after.replicas, after.replica_states, strict=True):
        if replica == after.leader and not unclean:
            break
        is_lost = replica in lost_logs
        obstacle = obstacle_of(brokers.get(replica), state, is_in_sync=replica in isr, is_log_lost=is_lost)
        if obstacle is not None:
            found[replica] = obstacle.value
    return found


def obstacle_of(
    broker: Broker | None, state: ReplicaState, *, is_in_sync: bool, is_log_lost: bool = False
) -> Obstacle | None:
    """Return what keeps a replica from being elected cleanly; None if nothing does.

    A replica without an obstacle is in ``Partition.in_sync`` and in ``replica_machine.online_replicas``.
    """
    if broker is None:
        return Obstacle.BROKER_UNREGISTERED
    if broker.state is BrokerState.controlled_shutdown:
        return Obstacle.BROKER_SHUTTING_DOWN
    if not broker.is_active:
        return Obstacle.BROKER_FENCED
    if state == ReplicaState.OfflineReplica:
        return Obstacle.LOG_LOST
    if is_log_lost:
        return Obstacle.LOG_LEFT_BEHIND
    return None if is_in_sync else Obstacle.NOT_IN_SYNC
