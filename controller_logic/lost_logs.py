"""Replicas whose brokers came back without the log directory that they were in.

The problem: the last in-sync replica of a partition goes away, and its broker comes back with another disk. The ISR
still names the replica, but all its records are gone. If it were elected as if nothing had happened, the other replicas
would truncate what they have, down to nothing. Kafka 4.1 does that.

The insight: directories have ids, and a broker registers those that it can read. So a replica whose directory is not
among them has lost its log. While there is a leader, this needs no rule: the replica has left the ISR with its broker's
former session, and catches up. While there is none, the partition remembers it (``Partition.lost_logs``), and only an
unclean election may take the replica, after all replicas that have a log.

    isr 1, no leader       1 was in A, its broker registers B     1 is online, and not elected
                           its broker registers A again           1 has all its records, and leads
                           2 is elected uncleanly                 1 follows 2, and nothing is remembered

A broker without ids of directories, or one that has not said yet in which of them a replica is, counts as if it had all
its logs, unless none of its former directories is left.
"""

from controller_logic.commit_reports import commit_lost_logs
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker
from state.ids import NO_EPOCH, NO_LEADER
from state.log_directory import is_online
from state.partition import Partition


def is_lost(former: Broker | None, broker: Broker, was_in: str, *, was_lost: bool) -> bool:
    """Return whether a broker that has registered lost the log of a replica.

    ``was_in`` is the replica's last known directory; empty if none is known. A broker with several directories says
    later in which of them it made the replica again.
    """
    if former is not None and former.incarnation == broker.incarnation:
        # The same process still has its logs. It reports a directory that fails.
        return was_lost
    if was_in and not broker.has_several_dirs:
        return not is_online(was_in, broker.log_dirs)
    if was_in:
        return was_lost or (former is None and not is_online(was_in, broker.log_dirs))
    return was_lost or (former is not None and _lacks_all(former, broker))


def _lacks_all(former: Broker, broker: Broker) -> bool:
    had = {*former.log_dirs, *former.offline_log_dirs} if former.is_kraft else set()
    return bool(had) and bool(broker.log_dirs) and had.isdisjoint(broker.log_dirs)


def note(topic: WorkingTopic, partition: Partition, broker: int, *, is_lost: bool) -> Partition:
    """Remember whether the log of a replica is lost, if its partition waits for a leader."""
    is_waiting = partition.leader == NO_LEADER and partition.leader_epoch != NO_EPOCH
    if not is_waiting or is_lost == (broker in partition.lost_logs):
        return partition
    others = tuple([replica for replica in partition.lost_logs if replica != broker])
    return commit_lost_logs(topic, partition, (*others, broker) if is_lost else others)
