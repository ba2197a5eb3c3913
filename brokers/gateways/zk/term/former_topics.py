"""Topics that were deleted while no gateway led: ZooKeeper still has them, and brokers still name them to clients."""

from typing import Any

from brokers.gateways.zk import znodes
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.mirror.stored import StoredTopic
from bus.clock import now_ms
from state.decisions import LeaderAndIsr
from state.ids import NO_LEADER
from state.reason import Reason


def former_partitions(topic: StoredTopic, view: ClusterView) -> dict[Place, LeaderAndIsr]:
    """Return the partitions that brokers must forget, because the topic is gone, or is another one by now."""
    if topic.is_new:
        # Brokers have never heard of it, whatever its text is.
        return {}
    read = znodes.topic_of(znodes.topic_path(topic.name), topic.text)
    known = view.topics.get(topic.name)
    if read.topic_id is None or (known is not None and known.topic_id == read.topic_id):
        return {}
    return {
        Place(topic.name, number): _partition(topic, read.topic_id, number, replicas)
        for number, replicas in sorted(read.partitions.items())
    }


def _partition(topic: StoredTopic, topic_id: str, number: int, replicas: tuple[int, ...]) -> LeaderAndIsr:
    stored = topic.states.get(number)
    values: dict[str, Any] = {"leader": NO_LEADER, "leader_epoch": 0, "isr": (), "partition_epoch": 0}
    if stored is not None:
        state = stored.state
        values = {"leader": state.leader, "leader_epoch": state.leader_epoch, "isr": state.isr}
        values["partition_epoch"] = stored.version
    return LeaderAndIsr(
        seq=0,
        controller_epoch=0,
        time_ms=now_ms(),
        reason=Reason.TOPIC_DELETED,
        topic=topic.name,
        topic_id=topic_id,
        partition=number,
        replicas=replicas,
        adding_replicas=(),
        removing_replicas=(),
        leader_recovery_state="RECOVERED",
        is_new=False,
        unclean=False,
        to=(),
        **values,
    )
