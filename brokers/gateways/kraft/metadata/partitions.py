"""Translate decisions about partitions into metadata records."""

from collections.abc import Iterator

from msgspec.structs import replace

from brokers.gateways.kraft.metadata.draft import MetadataDraft, partition_after
from brokers.gateways.kraft.metadata.image import Ids, PartitionState, Values
from brokers.gateways.kraft.metadata.uuids import UNASSIGNED_DIRECTORY
from brokers.gateways.kraft.record_frame import Record
from state.decisions import LeaderAndIsr
from state.partition import LeaderRecoveryState

PARTITION_VERSION = 1
PARTITION_CHANGE_VERSION = 1


class StaleDecisionError(Exception):
    """A decision is older than one before it; the decision log never has that order."""


def partition_records(draft: MetadataDraft, decision: LeaderAndIsr) -> Iterator[Record]:
    """Yield a record of what changed in a partition, or of all of it if it is new.

    A change record does not carry the epochs: brokers count them up. The decision has the last word on them, so if
    counting would give other epochs, the whole partition is written. A topic that is not in the image is being deleted,
    and its partitions went with it.

    Raises ``StaleDecisionError``.
    """
    topic = draft.topics.held.get(decision.topic_id)
    if topic is None:
        return
    held = draft.partitions(decision.topic_id).get(decision.partition)
    wanted = _decided(draft, decision, held)
    if held == wanted:
        return
    if held is None:
        yield whole(decision.topic_id, decision.partition, wanted)
        return
    if (wanted.partition_epoch, wanted.leader_epoch) < (held.partition_epoch, held.leader_epoch):
        raise StaleDecisionError(
            f"{decision.topic}-{decision.partition}: decision {decision.seq} is of partition epoch "
            f"{wanted.partition_epoch} and leader epoch {wanted.leader_epoch}, after {held.partition_epoch} "
            f"and {held.leader_epoch}"
        )
    change = _change(held, wanted)
    if partition_after(held, change) == wanted:
        values = {"PartitionId": decision.partition, "TopicId": decision.topic_id, **change}
        yield Record("PartitionChangeRecord", PARTITION_CHANGE_VERSION, values)
    else:
        yield whole(decision.topic_id, decision.partition, wanted)


def whole(topic_id: str, partition: int, state: PartitionState) -> Record:
    """Return the record of a whole partition."""
    values = {
        "PartitionId": partition,
        "TopicId": topic_id,
        "Replicas": list(state.replicas),
        "Isr": list(state.isr),
        "RemovingReplicas": list(state.removing_replicas),
        "AddingReplicas": list(state.adding_replicas),
        "Leader": state.leader,
        "LeaderRecoveryState": state.leader_recovery_state,
        "LeaderEpoch": state.leader_epoch,
        "PartitionEpoch": state.partition_epoch,
        "Directories": list(state.directories),
    }
    return Record("PartitionRecord", PARTITION_VERSION, values)


def changed_directories(draft: MetadataDraft, broker: int) -> Iterator[Record]:
    """Yield the partitions with a replica on ``broker`` whose log directory the broker no longer has.

    Epochs stay as they are, because nothing was decided. Brokers take a replica in an unknown directory for offline.
    """
    for _, topic_id in sorted(draft.topic_ids.held.items()):
        for number, held in sorted(draft.partitions(topic_id).items()):
            if broker in held.replicas:
                directories = directories_of(draft, held.replicas, held)
                if directories != held.directories:
                    yield whole(topic_id, number, replace(held, directories=directories))


def directories_of(draft: MetadataDraft, replicas: Ids, held: PartitionState | None) -> tuple[str, ...]:
    """Return the log directory of each replica; unassigned if its broker has none or several to choose from.

    A replica stays in its directory as long as its broker has that directory.
    """
    former = {} if held is None else dict(zip(held.replicas, held.directories, strict=True))
    return tuple([_directory(draft, replica, former.get(replica, UNASSIGNED_DIRECTORY)) for replica in replicas])


def _directory(draft: MetadataDraft, replica: int, former: str) -> str:
    broker = draft.brokers.held.get(replica)
    if broker is None or former in broker.log_dirs:
        return former
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIRECTORY


def _decided(draft: MetadataDraft, decision: LeaderAndIsr, held: PartitionState | None) -> PartitionState:
    return PartitionState(
        decision.replicas,
        directories_of(draft, decision.replicas, held),
        decision.isr,
        decision.removing_replicas,
        decision.adding_replicas,
        decision.leader,
        LeaderRecoveryState[decision.leader_recovery_state].value,
        decision.leader_epoch,
        decision.partition_epoch,
    )


def _change(held: PartitionState, wanted: PartitionState) -> Values:
    """Return the fields that differ. The leader is included even if only its epoch differs."""
    change: dict[str, object] = {}
    if wanted.leader_epoch != held.leader_epoch:
        change["Leader"] = wanted.leader
    if wanted.leader_recovery_state != held.leader_recovery_state:
        change["LeaderRecoveryState"] = wanted.leader_recovery_state
    for name, after, before in (
        ("Replicas", wanted.replicas, held.replicas),
        ("Directories", wanted.directories, held.directories),
        ("Isr", wanted.isr, held.isr),
        ("RemovingReplicas", wanted.removing_replicas, held.removing_replicas),
        ("AddingReplicas", wanted.adding_replicas, held.adding_replicas),
    ):
        if after != before:
            change[name] = list(after)
    return change
