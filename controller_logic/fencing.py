"""The fences that stand before every rule: is the sender known, and is what it knows current?"""

from typing import NamedTuple

from msgspec import UNSET

from controller_logic.batch import Batch
from controller_logic.working_topic import WorkingTopic
from state.broker import Broker
from state.event import AdminEvent
from state.events import IsrWritten, OfReplica
from state.partition import Partition
from state.reason import Reason
from state.topic_events import TopicIsrs, TopicLogEnds, TopicReports

# What names a topic.
_Named = OfReplica | IsrWritten | TopicIsrs | TopicLogEnds | TopicReports


class Refusal(NamedTuple):
    """Why a request is refused."""

    # Kafka's name of the error.
    error: str
    message: str


def cannot_be_kept(batch: Batch) -> bool:
    """Refuse the event at hand if its decision could not become records; return whether it was refused."""
    if batch.state.quorum.is_kraft:
        return False
    batch.recorder.answer("UNSUPPORTED_VERSION", "there is no metadata log: no KRaft gateway leads")
    return True


def of_another_quorum_epoch(batch: Batch, event: AdminEvent) -> bool:
    """Refuse a request that a gateway made in another quorum epoch than this one; return whether it was refused.

    A gateway computes some requests from the metadata that it knows (an item added to a list), one after another while
    it leads. Its successor may have changed the same things.
    """
    epoch = batch.state.quorum.quorum_epoch
    if event.quorum_epoch is UNSET or event.quorum_epoch == epoch:
        return False
    message = f"it was asked in quorum epoch {event.quorum_epoch}, and this is epoch {epoch}: ask the leading gateway"
    batch.recorder.answer("NOT_CONTROLLER", message)
    return True


def registered_broker(batch: Batch, broker: int) -> Broker | None:
    """Find the broker that an event names. An unknown one is rejected and answered."""
    found = batch.state.brokers.get(broker)
    if found is None:
        message = f"broker {broker} is not registered"
        batch.recorder.reject("broker", message, Reason.UNKNOWN_BROKER)
        batch.recorder.answer_if_requested("BROKER_ID_NOT_REGISTERED", message, broker=broker)
    return found


def in_its_epoch(batch: Batch, broker: int, broker_epoch: int) -> Broker | None:
    """Find the broker that an event names. One that speaks in another broker epoch is answered (KIP-380)."""
    found = registered_broker(batch, broker)
    if found is None or found.broker_epoch == broker_epoch:
        return found
    batch.recorder.answer(*stale_broker_epoch(found, broker_epoch), broker=broker, broker_epoch=found.broker_epoch)
    return None


def stale_broker_epoch(broker: Broker, broker_epoch: int) -> Refusal:
    """Refuse a broker epoch that is not the registered one."""
    message = f"broker {broker.broker} is registered with broker epoch {broker.broker_epoch}, not {broker_epoch}"
    return Refusal("STALE_BROKER_EPOCH", message)


def of_another_topic(batch: Batch, event: _Named) -> Refusal | None:
    """Refuse a request about a deleted topic whose name a newer topic has (KIP-516)."""
    topic = None if event.topic_id is None else batch.state.topic(event.topic)
    if topic is None or event.topic_id == topic.topic_id:
        return None
    return Refusal("UNKNOWN_TOPIC_ID", f"there is no topic {event.topic} of that id")


def known_partition(batch: Batch, event: OfReplica | IsrWritten) -> tuple[WorkingTopic, Partition] | Refusal:
    """Find the partition that an event names. A topic that is being deleted has none."""
    topic = known_topic(batch, event)
    if isinstance(topic, Refusal):
        return topic
    partition = partition_of(topic, event.partition)
    return partition if isinstance(partition, Refusal) else (topic, partition)


def reported_partition(batch: Batch, event: OfReplica) -> tuple[WorkingTopic, Partition] | None:
    """Find the partition that a broker's report names; refuse the report and return None if there is none."""
    namesake = of_another_topic(batch, event)
    if namesake is not None:
        batch.recorder.answer_if_requested(*namesake)
        return None
    found = known_partition(batch, event)
    if not isinstance(found, Refusal):
        return found
    held = batch.state.topic(event.topic)
    refuse_report(batch, "topic" if held is None or held.is_deleting else "partition", found)
    return None


def refuse_report(batch: Batch, field: str, refusal: Refusal) -> None:
    """Reject a report for one of its fields, and answer it if it asks for that."""
    batch.recorder.reject(field, refusal.message, Reason.REQUEST_REFUSED)
    batch.recorder.answer_if_requested(*refusal)


def known_topic(batch: Batch, event: _Named) -> WorkingTopic | Refusal:
    """Find the topic that an event names, unless it is being deleted."""
    refusal = of_another_topic(batch, event)
    if refusal is not None:
        return refusal
    topic = batch.state.topic(event.topic)
    if topic is None or topic.is_deleting:
        return no_topic(event.topic)
    return topic


def no_topic(name: str) -> Refusal:
    """Refuse a name that no topic has."""
    return Refusal("UNKNOWN_TOPIC_OR_PARTITION", f"there is no topic {name}")


def partition_of(topic: WorkingTopic, number: int) -> Partition | Refusal:
    """Find a topic's partition by its number."""
    partition = topic.partition(number)
    return no_partition(topic, number) if partition is None else partition


def no_partition(topic: WorkingTopic, number: int) -> Refusal:
    """Refuse a number that none of a topic's partitions has."""
    return Refusal("UNKNOWN_TOPIC_OR_PARTITION", f"topic {topic.topic} has no partition {number}")


def holds_no_replica(broker: int, topic: str, partition: int) -> Refusal:
    """Refuse what a broker says of a replica that it does not hold."""
    return Refusal("INVALID_REQUEST", f"broker {broker} holds no replica of {topic}-{partition}")


def fenced_leader(partition: Partition, broker: int, leader_epoch: int) -> Refusal | None:
    """Refuse a sender that does not lead this partition in this leader epoch (KIP-497)."""
    refusal = _fenced_epoch("leader epoch", leader_epoch, partition.leader_epoch, "FENCED_LEADER_EPOCH")
    if refusal is not None or broker == partition.leader:
        return refusal
    return Refusal("INVALID_REQUEST", f"broker {broker} is not the leader, {partition.leader} is")


def fenced_version(partition: Partition, partition_epoch: int) -> Refusal | None:
    """Refuse a request that was made from another partition epoch (KIP-497)."""
    return _fenced_epoch("partition epoch", partition_epoch, partition.partition_epoch, "INVALID_UPDATE_VERSION")


def _fenced_epoch(name: str, epoch: int, current: int, error_if_older: str) -> Refusal | None:
    if epoch < current:
        return Refusal(error_if_older, f"{name} {epoch} is older than {current}")
    return Refusal("NOT_CONTROLLER", f"{name} {epoch} is newer than {current}") if epoch > current else None


def is_below_the_level(batch: Batch, supported: int) -> bool:
    """Refuse a process that does not support the level; return whether it was refused."""
    if supported >= batch.state.level:
        return False
    message = f"the level is {batch.state.level}, and it supports {supported} at most"
    batch.recorder.reject("level", message, Reason.REQUEST_REFUSED)
    batch.recorder.answer_if_requested("UNSUPPORTED_VERSION", message)
    return True
