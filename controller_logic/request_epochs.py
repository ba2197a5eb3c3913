"""Follow a state change on its way: requested of a replica, received by its broker, completed there
(the life of a state change in the replication design V2).

    requested    a decision is addressed to the replica's broker
    received     the broker reports on the replica in that leader epoch, be it an error
    completed    it reports that it leads or follows in that leader epoch

Brokers behind a gateway report neither, and nothing is noted of them here: how far they have followed is in
the quorum's own description. Of each only the newest leader epoch is kept, so what a broker that does not
answer has yet to do never grows beyond one request a replica. What is decided does not depend on any of it.
"""

from msgspec.structs import replace

from controller_logic.apply import asked
from controller_logic.batch import Batch
from controller_logic.commit import commit_request_epochs
from controller_logic.working_topic import WorkingTopic
from state.events import ReplicaReport
from state.ids import NO_EPOCH
from state.partition import Partition

Epochs = tuple[int, ...]


def request(batch: Batch, topic: WorkingTopic, partition: Partition, broker: int) -> None:
    """Note that a broker is told once more who leads."""
    if broker not in batch.state.reporting:
        return
    requested = asked(partition.replicas, partition.requested_epochs, (broker,), partition.leader_epoch)
    if requested != partition.requested_epochs:
        place = partition.replicas.index(broker)
        commit_request_epochs(batch, topic, partition, replace(partition, requested_epochs=requested), place)


def reported(batch: Batch, topic: WorkingTopic, partition: Partition, event: ReplicaReport) -> Partition:
    """Note how far a replica has come; return the partition as it stands then.

    A report of a leader epoch that was never decided says nothing.
    """
    if event.leader_epoch > partition.leader_epoch:
        return partition
    place = partition.replicas.index(event.broker)
    received = _raised(partition, partition.received_epochs or partition.completed_epochs, place, event.leader_epoch)
    completed = partition.completed_epochs
    if event.outcome in ("leader", "follower"):
        completed = _raised(partition, completed, place, event.leader_epoch)
    # Nearly always the two are the same, and then it is kept once.
    apart = () if received == completed else received
    if (completed, apart) == (partition.completed_epochs, partition.received_epochs):
        return partition
    after = replace(partition, completed_epochs=completed, received_epochs=apart)
    commit_request_epochs(batch, topic, partition, after, place)
    return after


def _raised(partition: Partition, epochs: Epochs, place: int, epoch: int) -> Epochs:
    held = epochs or (NO_EPOCH,) * len(partition.replicas)
    return (*held[:place], epoch, *held[place + 1 :]) if held[place] < epoch else epochs
