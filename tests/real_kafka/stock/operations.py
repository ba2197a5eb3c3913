"""What operators do to a cluster, with a client and with Kafka's tools: played in order on three empty brokers."""

from collections.abc import Callable
from typing import Any, NamedTuple

from kafka import TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    KafkaAdminClient,
    NewPartitions,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from brokers.launch.kafka.tools import CONFIGS, FEATURES, LEADER_ELECTION, REASSIGN_PARTITIONS, TOPICS

# Stands for a file with the moves below.
PLAN = "<plan>"
MOVES = {"version": 1, "partitions": [{"topic": "tools", "partition": 0, "replicas": [3, 2]}]}


class Tool(NamedTuple):
    """A run of one of Kafka's tools.

    ``reads`` says that it changes nothing, ``differs`` why its output is another. ``until`` is what both clusters
    show before the script goes on, because what follows would depend on how fast they are.
    """

    name: str
    arguments: str
    reads: bool = False
    differs: str = ""
    until: str = ""


class Call(NamedTuple):
    """A call of a client; the fields of a ``Tool``, with what it asks for instead of arguments."""

    name: str
    ask: Callable[[KafkaAdminClient], Any]
    reads: bool = False
    differs: str = ""
    until: str = ""


def _tried(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    return call(*given, raise_errors=False, **named)


def _create(name: str, **config: str) -> Callable[[KafkaAdminClient], Any]:
    assigned = {"assignments": {0: [1, 2], 1: [2, 3], 2: [3, 1]}, "configs": config}
    return lambda admin: _tried(admin.create_topics, {name: assigned})


def _config(kind: str, name: str, **values: Any) -> ConfigResource:
    named = {key.replace("_", "."): value for key, value in values.items()}
    return ConfigResource(ConfigResourceType[kind], name, named or None)


def _alter(kind: str, name: str, **values: Any) -> Callable[[KafkaAdminClient], Any]:
    return lambda admin: admin.alter_configs([_config(kind, name, **values)], raise_on_unknown=False)


def _describe(kind: str, name: str) -> Callable[[KafkaAdminClient], Any]:
    return lambda admin: admin.describe_configs([_config(kind, name)])


def _acl(principal: str, operation: str, topic: str) -> ACL:
    pattern = ResourcePattern(ResourceType.TOPIC, topic)
    return ACL(principal, "*", ACLOperation[operation], ACLPermissionType.ALLOW, pattern)


_ANY = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
_ANY_ACL = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, _ANY)
_A0, _NOWHERE = TopicPartition("a", 0), TopicPartition("nowhere", 0)
_PASSWORD = UserScramCredentialUpsertion("u", ScramMechanism.SCRAM_SHA_256, b"p", iterations=4096, salt=b"salt")

_EPOCH_OF_A_MOVE = "the leader epoch rises when a move begins too, as in ZooKeeper mode"

TOPICS_OF_A_CLIENT = [
    Call("create", _create("a", **{"retention.ms": "1000"})),
    Call("create it again", _create("a")),
    Call("create a bad name", _create("a b")),
    Call("create with an unknown setting", _create("n", none="1")),
    Call("create with a bad value", _create("n", **{"retention.ms": "x"})),
    Call("create too wide", lambda admin: _tried(admin.create_topics, {"w": {"replication_factor": 9}})),
    Call(
        "validate",
        lambda admin: _tried(admin.create_topics, {"v": {"num_partitions": 2}}, validate_only=True),
        differs="no topic id; Kafka makes one up, which no topic ever gets",
    ),
    Call("describe", lambda admin: admin.describe_topics(["a"]), reads=True),
    Call("describe none", lambda admin: admin.describe_topics(["nowhere"]), reads=True),
    Call("grow", lambda admin: _tried(admin.create_partitions, {"a": NewPartitions(4, [[1, 2]])})),
    Call("shrink", lambda admin: _tried(admin.create_partitions, {"a": NewPartitions(2)})),
    Call("grow badly", lambda admin: _tried(admin.create_partitions, {"a": NewPartitions(5, [[1, 9]])})),
    Call("grow nothing", lambda admin: _tried(admin.create_partitions, {"nowhere": NewPartitions(2)})),
    Call("move", lambda admin: admin.alter_partition_reassignments({_A0: [3, 2]})),
    Call("moves", lambda admin: admin.list_partition_reassignments(), reads=True, until="{}"),
    Call("describe the moved", lambda admin: admin.describe_topics(["a"]), True, _EPOCH_OF_A_MOVE),
    Call("move to nobody", lambda admin: admin.alter_partition_reassignments({_A0: [9]})),
    Call("cancel nothing", lambda admin: admin.alter_partition_reassignments({_A0: None, _NOWHERE: None})),
    Call("elect", lambda admin: _tried(admin.elect_leaders, 0, {"a": [0, 1, 9]})),
    Call("elect uncleanly", lambda admin: _tried(admin.elect_leaders, 1, {"a": [0], "nowhere": [0]})),
    Call("describe the elected", lambda admin: admin.describe_topics(["a"]), True, _EPOCH_OF_A_MOVE),
]
SETTINGS_OF_A_CLIENT = [
    Call("set", _alter("TOPIC", "a", **{"cleanup.policy": "compact", "max.message.bytes": "2000"})),
    Call("append", _alter("TOPIC", "a", **{"cleanup.policy": (AlterConfigOp.APPEND, "delete")})),
    Call("delete", _alter("TOPIC", "a", **{"max.message.bytes": (AlterConfigOp.DELETE, None)})),
    Call("set badly", _alter("TOPIC", "a", **{"retention.ms": "x"})),
    Call("set what is unknown", _alter("TOPIC", "a", none="1")),
    Call("set of nothing", _alter("TOPIC", "nowhere", **{"retention.ms": "1"})),
    Call("describe it", _describe("TOPIC", "a"), reads=True),
    Call("set for a broker", _alter("BROKER", "2", **{"max.connections": "500"})),
    Call("set for no broker", _alter("BROKER", "99", **{"max.connections": "500"})),
    Call("describe a group", _describe("GROUP", "g"), reads=True),
    Call("set for a group", _alter("GROUP", "g", **{"consumer.heartbeat.interval.ms": "6000"})),
    Call("describe the group", _describe("GROUP", "g"), reads=True),
    Call("all with settings", lambda admin: admin.list_config_resources(), reads=True),
]
ACCESS_OF_A_CLIENT = [
    Call("no password", lambda admin: admin.describe_user_scram_credentials(), reads=True),
    Call("a password", lambda admin: admin.alter_user_scram_credentials([_PASSWORD])),
    Call("the password", lambda admin: admin.describe_user_scram_credentials(), reads=True),
    Call("allow", lambda admin: admin.create_acls([_acl("User:a", "READ", "a"), _acl("User:a", "WRITE", "a")])),
    Call("allow badly", lambda admin: admin.create_acls([_acl("nobody", "READ", "a")])),
    Call("ACLs", lambda admin: admin.describe_acls(_ANY_ACL), reads=True),
    Call("forbid again", lambda admin: admin.delete_acls([_ANY_ACL])),
    Call("no ACLs", lambda admin: admin.describe_acls(_ANY_ACL), reads=True),
]
THE_CLUSTER = [
    Call("features", lambda admin: admin.describe_features(), reads=True),
    Call("no such feature", lambda admin: admin.update_features({"none.version": 1})),
    Call("no such level", lambda admin: admin.update_features({"group.version": 99})),
    Call("share groups", lambda admin: admin.update_features({"share.version": 1})),
    Call("the features", lambda admin: admin.describe_features(), reads=True),
    Call("the cluster", lambda admin: admin.describe_cluster(), reads=True),
]
ENDS = [
    Call("delete topics", lambda admin: _tried(admin.delete_topics, ["a"])),
    Call("delete nothing", lambda admin: _tried(admin.delete_topics, ["nowhere"])),
    Call("no topic", lambda admin: admin.describe_topics(["a"]), reads=True),
]

OF_TOOLS = [
    Tool(TOPICS, "--create --topic tools --replica-assignment 1:2,2:3,3:1 --config retention.ms=86400000"),
    Tool(TOPICS, "--describe --topic tools", reads=True),
    Tool(TOPICS, "--create --topic tools --partitions 1 --replication-factor 1"),
    Tool(CONFIGS, "--alter --entity-type users --entity-name u --add-config consumer_byte_rate=1024"),
    Tool(CONFIGS, "--describe --entity-type users --entity-name u", reads=True),
    Tool(CONFIGS, "--alter --entity-type brokers --entity-default --add-config log.cleaner.threads=2"),
    Tool(CONFIGS, "--describe --entity-type brokers --entity-default", reads=True),
    Tool(REASSIGN_PARTITIONS, f"--execute --reassignment-json-file {PLAN}"),
    Tool(REASSIGN_PARTITIONS, f"--verify --reassignment-json-file {PLAN}", reads=True, until="is completed."),
    Tool(LEADER_ELECTION, "--election-type preferred --topic tools --partition 0"),
    Tool(FEATURES, "describe", reads=True),
    Tool(TOPICS, "--delete --topic tools"),
]

SCRIPT: list[Tool | Call] = [
    *TOPICS_OF_A_CLIENT,
    *SETTINGS_OF_A_CLIENT,
    *ACCESS_OF_A_CLIENT,
    *THE_CLUSTER,
    *OF_TOOLS,
    *ENDS,
]
