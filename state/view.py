"""The state as seen from outside: one sorted JSON object, in Kafka's words."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

from msgspec.structs import asdict

from state.broker import Broker
from state.cluster import Cluster
from state.entity import shown_values
from state.ids import NO_EPOCH
from state.partition import Partition, Topic, TopicState


def view_of(cluster: Cluster, topics: Iterable[Topic]) -> dict[str, Any]:
    """Describe the whole state, from the ``cluster`` of shard 0 and the ``topics`` of all shards."""
    ordered = sorted(topics, key=lambda topic: topic.topic)
    return (
        _with_acls(cluster)
        | _with_entities(cluster)
        | {
            "controller_epoch": cluster.controller_epoch,
            "seq": cluster.seq,
            "time_ms": cluster.clock_ms,
            "clock_skew_ms": cluster.clock_skew_ms,
            "brokers": brokers_of(cluster, ordered),
            "topics": [_topic(topic) for topic in ordered],
            "partitions": [
                _partition(topic.topic, partition, has_eligible=cluster.has_eligible_leaders)
                for topic in ordered
                for partition in topic.partitions
            ],
        }
    )


def brokers_of(cluster: Cluster, topics: Iterable[Topic]) -> list[dict[str, Any]]:
    """Describe the brokers alone, each with its backlog in ``topics``."""
    served = (partition for topic in topics if topic.state == TopicState.created for partition in topic.partitions)
    backlog = cluster.shown_backlog(Counter(broker for partition in served for broker in partition.backlog))
    return [_broker(cluster.brokers[broker], backlog[broker]) for broker in sorted(cluster.brokers)]


def _with_acls(cluster: Cluster) -> dict[str, Any]:
    # Most clusters have none.
    listed = [{"acl_id": acl_id} | asdict(acl) for acl_id, acl in sorted(cluster.acls.items())]
    return {"acls": listed} if listed else {}


def _with_entities(cluster: Cluster) -> dict[str, Any]:
    held = [one for _, one in sorted(cluster.entities.items())]
    listed = [asdict(one) | {"values": shown_values(one.entity_type, one.values)} for one in held]
    return {"entities": listed} if listed else {}


def _broker(broker: Broker, backlog: int) -> dict[str, Any]:
    return {
        "broker": broker.broker,
        "broker_epoch": broker.broker_epoch,
        "incarnation": broker.incarnation,
        "state": broker.state.name,
        "rack": broker.rack,
        "backlog": backlog,
        **({"offline_log_dirs": broker.offline_log_dirs} if broker.offline_log_dirs else {}),
        **({"cordoned_log_dirs": broker.cordoned_log_dirs} if broker.cordoned_log_dirs else {}),
    }


def _topic(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.topic,
        "topic_id": topic.topic_id,
        "state": topic.shown_state.name,
        "config": dict(sorted(topic.config.items())),
    }


def _partition(topic: str, partition: Partition, *, has_eligible: bool) -> dict[str, Any]:
    states = zip(partition.replicas, partition.replica_states, strict=True)
    return (
        {
            "topic": topic,
            "partition": partition.partition,
            "state": partition.state.name,
            "leader": partition.leader,
            "leader_epoch": partition.leader_epoch,
            "partition_epoch": partition.partition_epoch,
            "isr": partition.isr,
            "replicas": partition.replicas,
            "adding_replicas": partition.adding_replicas,
            "removing_replicas": partition.removing_replicas,
            "leader_recovery_state": partition.leader_recovery_state.name,
            "high_watermark": partition.high_watermark,
            "replica_states": {str(replica): state.name for replica, state in states},
            "requested_epochs": _by_replica(partition, partition.requested_epochs),
            "received_epochs": _by_replica(partition, partition.received_epochs or partition.completed_epochs),
            "completed_epochs": _by_replica(partition, partition.completed_epochs),
            "removed_replicas": {str(removed.broker): removed.state.name for removed in partition.removed},
        }
        | eligible_fields(partition, has_eligible=has_eligible)
        | _directories(partition)
    )


def eligible_fields(partition: Partition, *, has_eligible: bool) -> dict[str, tuple[int, ...]]:
    """Return the eligible leader replicas and the last known leader, if they are kept or any is left."""
    fields = {"elr": partition.elr, "last_known_elr": partition.last_known_elr}
    return fields if has_eligible or partition.has_eligible else {}


def _directories(partition: Partition) -> dict[str, Any]:
    # Only brokers with several log directories say where their replicas are.
    pairs = zip(partition.replicas, partition.directories, strict=False)
    known = {str(replica): directory for replica, directory in pairs if directory}
    return {"directories": known} if known else {}


def _by_replica(partition: Partition, epochs: tuple[int, ...]) -> dict[str, int]:
    pairs = zip(partition.replicas, epochs, strict=False)
    return {str(replica): epoch for replica, epoch in pairs if epoch != NO_EPOCH}
