"""The texts in ZooKeeper that brokers and Kafka's tools read and write (Kafka's ``ZkData``)."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from brokers.gateways.zk.cluster_view import Place, TopicView
from state.decisions import LeaderAndIsr
from state.registration import Listener

CONTROLLER, CONTROLLER_EPOCH = "/controller", "/controller_epoch"
CLUSTER_ID = "/cluster/id"
BROKERS, TOPICS = "/brokers/ids", "/brokers/topics"
TOPIC_CONFIGS, CONFIG_CHANGES = "/config/topics", "/config/changes"
ISR_CHANGES = "/isr_change_notification"
LOG_DIR_EVENTS = "/log_dir_event_notification"
# The entity that stands for all brokers, below ``/config``.
ALL_BROKERS = ("brokers", "<default>")
BROKER_DEFAULTS = f"/config/{'/'.join(ALL_BROKERS)}"
CONFIG_CHANGE = f"{CONFIG_CHANGES}/config_change_"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
PRODUCER_IDS = "/latest_producer_id_block"
# isrflow's own: the note of a take-over under way, the bus that leads the cluster, and the newest written decision.
ADOPTION, BUS, WRITES = "/isrflow_adoption", "/isrflow_bus", "/isrflow_writes"
# Made beforehand, because brokers and tools expect them. /latest_producer_id_block is not among them: an empty one
# kills brokers that read it.
PERSISTENT = (BROKERS, TOPICS, TOPIC_CONFIGS, CONFIG_CHANGES, DELETE_TOPICS, ISR_CHANGES, LOG_DIR_EVENTS)
# Kafka's LeaderRecoveryState, as in a partition's state.
RECOVERING = 1
# Kafka writes no zeros in front of a number, so 01 is the name of something else.
_NUMBER = re.compile("0|[1-9][0-9]{0,9}")
_ENDPOINT = re.compile(r"([A-Za-z0-9_.-]+)://(\[[0-9a-fA-F:.]+\]|[^:/]*):([0-9]+)")

T = TypeVar("T")


class ZnodeError(ValueError):
    """A znode's text is not what Kafka writes; the message names the znode and the field."""


class BrokerZnode(msgspec.Struct, frozen=True):
    """A broker's registration. ``epoch`` is the transaction that made the znode."""

    broker: int
    epoch: int
    listeners: tuple[Listener, ...]
    rack: str | None


class _Broker(msgspec.Struct):
    endpoints: list[str]
    listener_security_protocol_map: dict[str, str] = {}
    rack: str | None = None


class ControllerZnode(msgspec.Struct):
    """The current controller. Only a KRaft controller, to which a cluster migrates, sets the epoch."""

    brokerid: int
    kraft_controller_epoch: int = msgspec.field(default=-1, name="kraftControllerEpoch")


class TopicZnode(msgspec.Struct):
    """A topic's assignment, and its id if the cluster has topic ids."""

    partitions: dict[int, tuple[int, ...]]
    adding_replicas: dict[int, tuple[int, ...]] = {}
    removing_replicas: dict[int, tuple[int, ...]] = {}
    topic_id: str | None = None


class StateZnode(msgspec.Struct):
    """A partition's leader and ISR."""

    leader: int
    leader_epoch: int
    controller_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int = 0
    # isrflow's own: the partition epoch that was decided. It is missing once a broker has written the znode.
    isrflow_partition_epoch: int | None = None


class _Cluster(msgspec.Struct):
    id: str


class _ConfigChange(msgspec.Struct):
    entity_path: str = ""


class _LogDirEvent(msgspec.Struct):
    broker: int


class _Config(msgspec.Struct):
    config: dict[str, str] = {}


class _ProducerIds(msgspec.Struct):
    block_end: int


class _Reassigned(msgspec.Struct):
    topic: str
    partition: int
    replicas: tuple[int, ...]


class _Place(msgspec.Struct):
    topic: str
    partition: int


class _Places(msgspec.Struct):
    partitions: list[_Place] = []


class _Reassignments(msgspec.Struct):
    partitions: list[_Reassigned] = []


def read(path: str, data: bytes, kind: type[T]) -> T:
    """Read a znode's text. Raises ``ZnodeError``."""
    try:
        return msgspec.json.decode(data, type=kind, strict=False)
    except msgspec.MsgspecError as error:
        raise ZnodeError(f"{path}: {error}") from error


def broker_of(path: str, data: bytes, created_by: int) -> BrokerZnode:
    """Read ``/brokers/ids/N``, which transaction ``created_by`` made. Raises ``ZnodeError``."""
    found = read(path, data, _Broker)
    listeners = []
    for text in found.endpoints:
        match = _ENDPOINT.fullmatch(text)
        if match is None:
            raise ZnodeError(f"{path}: endpoints: {text!r} is not NAME://HOST:PORT")
        name = match[1]
        protocol = found.listener_security_protocol_map.get(name, name)
        listeners.append(Listener(name, match[2].strip("[]"), int(match[3]), protocol))
    if not listeners:
        raise ZnodeError(f"{path}: endpoints: at least one is expected")
    return BrokerZnode(number_in(path), created_by, tuple(listeners), found.rack)


def number_in(path: str) -> int:
    """Return the id at the end of a path. Raises ``ZnodeError``."""
    last = path.rpartition("/")[2]
    if not _NUMBER.fullmatch(last):
        raise ZnodeError(f"{path}: a number is expected at the end")
    return int(last)


def controller_of(data: bytes) -> ControllerZnode:
    """Read ``/controller``. Raises ``ZnodeError``."""
    return read(CONTROLLER, data, ControllerZnode)


def controller_text(controller: int, time_ms: int) -> bytes:
    """Write ``/controller``."""
    values = {"version": 2, "brokerid": controller, "timestamp": str(time_ms), "kraftControllerEpoch": -1}
    return msgspec.json.encode(values)


def cluster_id_of(data: bytes) -> str:
    """Read ``/cluster/id``. Raises ``ZnodeError``."""
    return read(CLUSTER_ID, data, _Cluster).id


def cluster_id_text(cluster_id: str) -> bytes:
    """Write ``/cluster/id``."""
    return msgspec.json.encode({"version": "1", "id": cluster_id})


def epoch_of(data: bytes) -> int:
    """Read ``/controller_epoch``. Raises ``ZnodeError``."""
    if not re.fullmatch(rb"[0-9]{1,10}", data):
        raise ZnodeError(f"{CONTROLLER_EPOCH}: {data[:40]!r} is not a number")
    return int(data)


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def state_path(place: Place) -> str:
    return f"{TOPICS}/{place.topic}/partitions/{place.partition}/state"


def topic_of(path: str, data: bytes) -> TopicZnode:
    """Read ``/brokers/topics/T``. Raises ``ZnodeError``."""
    return read(path, data, TopicZnode)


def topic_text(topic: TopicView) -> bytes:
    """Write ``/brokers/topics/T``."""
    held = sorted(topic.partitions.items())
    values = {
        "version": 3,
        "partitions": {str(number): one.replicas for number, one in held},
        "adding_replicas": {str(number): one.adding_replicas for number, one in held if one.adding_replicas},
        "removing_replicas": {str(number): one.removing_replicas for number, one in held if one.removing_replicas},
        "topic_id": topic.topic_id,
    }
    return msgspec.json.encode(values)


def with_topic_id(path: str, data: bytes, topic_id: str) -> bytes:
    """Write ``/brokers/topics/T`` as it is, with an id. Raises ``ZnodeError``."""
    return msgspec.json.encode(read(path, data, dict[str, Any]) | {"version": 3, "topic_id": topic_id})


def state_of(path: str, data: bytes) -> StateZnode:
    """Read the state of a partition. Raises ``ZnodeError``."""
    return read(path, data, StateZnode)


def state_text(decision: LeaderAndIsr, controller_epoch: int, *, is_marked: bool = False) -> bytes:
    """Write the state of a partition. Where brokers write it too, it ``is_marked``, and has no recovery state."""
    values: dict[str, Any] = {
        "version": 1,
        "leader": decision.leader,
        "leader_epoch": decision.leader_epoch,
        "controller_epoch": controller_epoch,
        "isr": decision.isr,
    }
    if is_marked:
        values["isrflow_partition_epoch"] = decision.partition_epoch
    elif decision.leader_recovery_state == "RECOVERING":
        values["leader_recovery_state"] = RECOVERING
    return msgspec.json.encode(values)


def next_producer_id_of(data: bytes) -> int:
    """Read from ``/latest_producer_id_block`` the id after the block. Raises ``ZnodeError``."""
    return read(PRODUCER_IDS, data, _ProducerIds).block_end + 1


def producer_ids_text(controller: int, first: int, end: int) -> bytes:
    """Write ``/latest_producer_id_block``: the block that was handed out last, up to ``end`` - 1."""
    values = {"version": 1, "broker": controller, "block_start": str(first), "block_end": str(end - 1)}
    return msgspec.json.encode(values)


def config_of(path: str, data: bytes) -> dict[str, str]:
    """Read the settings of a topic or broker. Raises ``ZnodeError``."""
    return read(path, data, _Config).config


def config_text(config: Mapping[str, str]) -> bytes:
    """Write the settings of a topic or broker."""
    return msgspec.json.encode({"version": 1, "config": dict(config)})


def config_change_text(topic: str) -> bytes:
    """Write the note that tells brokers to read a topic's settings again."""
    return msgspec.json.encode({"version": 2, "entity_path": f"topics/{topic}"})


def changed_entity_in(path: str, data: bytes) -> tuple[str, str]:
    """Return the entity whose settings changed, as below ``/config``: ("topics", its name). Raises ``ZnodeError``."""
    kind, _, name = read(path, data, _ConfigChange).entity_path.partition("/")
    return kind, name


def noting_broker_in(path: str, data: bytes) -> int:
    """Return the broker that noted the failure of one of its log directories. Raises ``ZnodeError``."""
    return read(path, data, _LogDirEvent).broker


def reassignments_of(data: bytes) -> dict[Place, tuple[int, ...]]:
    """Read ``/admin/reassign_partitions``. Raises ``ZnodeError``."""
    found = read(REASSIGN_PARTITIONS, data, _Reassignments)
    return {Place(one.topic, one.partition): one.replicas for one in found.partitions}


def places_of(path: str, data: bytes) -> list[Place]:
    """Read a list of partitions: an election's, or a child of ``/isr_change_notification``. Raises ``ZnodeError``."""
    return [Place(one.topic, one.partition) for one in read(path, data, _Places).partitions]
