"""How far brokers have carried out the requests about each replica (a state change's life in replication design V2).

    requested    a decision is addressed to the replica's broker
    received     the broker reports on the replica in that leader epoch, even an error
    completed    the broker reports that the replica leads or follows in that leader epoch

Only the newest leader epoch of each is kept, so the backlog of a broker that does not answer never exceeds one request
for each replica. Rejected: a bounded queue of requests for each broker. If the broker did not answer, only the newest
request for each replica would be left in it.
Brokers behind a gateway do not report, so nothing is noted about them. No decision depends on any of this.
"""

from msgspec.structs import replace

from controller_logic.apply import with_requested_epochs
from controller_logic.batch import Batch
from controller_logic.commit_reports import commit_request_epochs
from controller_logic.working_topic import WorkingTopic
from state.ids import NO_EPOCH
from state.partition import Partition
from state.topic_events import OneReport

Epochs = tuple[int, ...]


def request(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> None:
    """Note that a decision tells a broker once more who leads a partition."""
    if broker not in batch.state.reporting:
        return
    requested = with_requested_epochs(partition.replicas, partition.requested_epochs, (broker,), partition.leader_epoch)
    if requested != partition.requested_epochs:
        place = partition.replicas.index(broker)
        commit_request_epochs(batch, topic, partition, replace(partition, requested_epochs=requested), place)


def reported(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int, report: OneReport) -> Partition:
    """Note what a broker reported of its replica; return the partition as it stands then.

    A report of a leader epoch that was never decided is ignored.
    """
    if report.leader_epoch > partition.leader_epoch:
        return partition
    place = partition.replicas.index(broker)
    received = _raised(partition, partition.received_epochs or partition.completed_epochs, place, report.leader_epoch)
    completed = partition.completed_epochs
    if report.outcome in ("leader", "follower"):
        completed = _raised(partition, completed, place, report.leader_epoch)
    # The two are nearly always equal, and then only one is stored.
    apart = () if received == completed else received
    if (completed, apart) == (partition.completed_epochs, partition.received_epochs):
        return partition
    after = replace(partition, completed_epochs=completed, received_epochs=apart)
    commit_request_epochs(batch, topic, partition, after, place)
    return after


def _raised(partition: Partition, epochs: Epochs, place: int, epoch: int) -> Epochs:
    held = epochs or (NO_EPOCH,) * len(partition.replicas)
    return (*held[:place], epoch, *held[place + 1 :]) if held[place] < epoch else epochs
