"""The event that takes over a topic as another controller left it in ZooKeeper."""

import msgspec

from brokers.gateways.zk import znodes
from brokers.gateways.zk.mirror.stored import StoredTopic
from brokers.gateways.zk.znodes import ZnodeError
from state.adoption_events import AdoptTopic, FoundPartition


def adopted(topic: StoredTopic, time_ms: int) -> AdoptTopic:
    """Return the event that takes a topic over as ZooKeeper holds it. Raises ``ZnodeError``."""
    if topic.unreadable is not None:
        raise ZnodeError(topic.unreadable)
    path = znodes.topic_path(topic.name)
    read = znodes.topic_of(path, topic.text)
    if read.topic_id is None:
        raise ZnodeError(
            f"{path}: topic_id: a text is expected; topics get one by inter.broker.protocol.version 2.8 or later,"
            " or by a gateway with --set inter.broker.protocol.version=2.6"
        )
    if sorted(read.partitions) != list(range(len(read.partitions))):
        raise ZnodeError(f"{path}: partitions: numbers from 0 on without a gap are expected")
    partitions = tuple(_partition(topic, read, number) for number in range(len(read.partitions)))
    config: dict[str, str | int | float | bool | None] = dict(topic.config or {})
    return AdoptTopic(time_ms=time_ms, topic=topic.name, topic_id=read.topic_id, partitions=partitions, config=config)


def _partition(topic: StoredTopic, read: znodes.TopicZnode, number: int) -> FoundPartition:
    adding, removing = read.adding_replicas.get(number, ()), read.removing_replicas.get(number, ())
    replicas = read.partitions[number]
    # Kafka's controller puts the replicas that it removes last, and so do the rules.
    in_order = tuple(one for one in replicas if one not in removing) + tuple(one for one in replicas if one in removing)
    found = FoundPartition(replicas=in_order, adding_replicas=adding, removing_replicas=removing)
    stored = topic.states.get(number)
    if stored is None:
        return found
    state = stored.state
    return msgspec.structs.replace(
        found,
        isr=state.isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=stored.version,
        leader_recovery_state="RECOVERING" if state.leader_recovery_state == znodes.RECOVERING else "RECOVERED",
    )
