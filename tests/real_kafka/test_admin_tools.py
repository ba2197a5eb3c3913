"""Kafka's own admin tools make changes, and describe the cluster as the engine does."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka import TopicPartition as Partition
from kafka.admin import KafkaAdminClient

from brokers.launch.kafka.tools import CONFIGS, FEATURES, TOPICS, ToolError, run_tool, tools_archive
from bus.clock import now_ms
from conf.java import java_home
from tests.support.real_cluster import LOOPBACK, POLICY, RealCluster, led_by_rules
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Three brokers behind two gateways."""
    cluster = RealCluster(tmp_path_factory.mktemp("real"), gateways=2)
    policy = POLICY | {"min_insync_replicas": 2, "num_partitions": 3, "default_replication_factor": 2}
    # A share coordinator of Kafka 4.1 knows no topics until the first record after it was loaded.
    policy |= {"metadata_max_idle_interval_ms": 1_000}
    with led_by_rules(cluster, **policy):
        yield cluster


def reassignment(path: Path, **replicas: list[int]) -> str:
    listed = [{"topic": "moved", "partition": int(key[1:]), "replicas": value} for key, value in replicas.items()]
    path.write_text(json.dumps({"version": 1, "partitions": listed}))
    return str(path)


def test_kafkas_tool_creates_extends_and_deletes_a_topic(cluster: RealCluster) -> None:
    cluster.tool("TopicCommand", "--create --topic life --partitions 2 --replication-factor 3")
    cluster.tool_agrees("life")
    cluster.tool("TopicCommand", "--alter --topic life --partitions 4")
    cluster.tool_agrees("life")
    assert set(cluster.partitions("life")) == {0, 1, 2, 3}
    cluster.tool("TopicCommand", "--delete --topic life")
    wait_until(lambda: cluster.partitions("life") == {}, "the topic to be gone")
    folders = [node.folder for node in cluster.kafka.nodes.values()]
    wait_until(lambda: not any([*folder.glob("data-*/life-[0-9]")] for folder in folders), "its logs to be gone")


def test_the_tools_start_from_the_archive_of_their_classes(cluster: RealCluster) -> None:
    path = tools_archive(java_home()).path
    # Java then ends if the archive does not fit the tool's class path, as for a tool that has another one.
    flags = ("-Xshare:on", f"-XX:SharedArchiveFile={path}")
    run_tool(TOPICS, cluster.bootstrap, ["--list"], archive_flags=flags)
    with pytest.raises(ToolError, match="shared class paths mismatch"):
        run_tool(CONFIGS, cluster.bootstrap, ["--version"], archive_flags=flags)


def test_replicas_are_moved_and_leaders_are_elected(cluster: RealCluster, tmp_path: Path) -> None:
    cluster.tool("TopicCommand", "--create --topic moved --replica-assignment 1:2,2:3")
    plan = reassignment(tmp_path / "plan.json", p0=[3, 2], p1=[1, 2])
    cluster.tool("reassign.ReassignPartitionsCommand", f"--execute --reassignment-json-file {plan}")
    wait_until(
        lambda: {held["replicas"] for held in cluster.partitions("moved").values()} == {(3, 2), (1, 2)},
        "the replicas to have moved",
    )
    output = cluster.tool("reassign.ReassignPartitionsCommand", f"--verify --reassignment-json-file {plan}")
    assert output.count("is completed") == 2
    cluster.tool_agrees("moved")
    wait_until(lambda: not (cluster.broker(1).folder / "data-0" / "moved-0").exists(), "the replica left to be deleted")
    cluster.wait_for_isr("moved", 2)
    cluster.tool("LeaderElectionCommand", "--election-type preferred --all-topic-partitions")
    assert {number: held["leader"] for number, held in cluster.partitions("moved").items()} == {0: 3, 1: 1}
    cluster.tool_agrees("moved")


def test_quotas_and_settings_of_groups_are_set_and_described(cluster: RealCluster) -> None:
    """Brokers and a gateway take them alike; brokers describe quotas, and enforce them."""
    gateway = f"{LOOPBACK}:{cluster.voters[0].port}"
    quota = "--alter --add-config producer_byte_rate=1000 --entity-type clients --entity-name slow"
    cluster.tool(CONFIGS, quota)
    session = "consumer.session.timeout.ms=50000"
    group = "--entity-type groups --entity-name g"
    run_tool(CONFIGS, gateway, f"--alter --add-config {session} {group}".split(), is_controller=True)
    wait_until(lambda: session in cluster.tool(CONFIGS, f"--describe {group}"), "a broker to know the group's settings")
    # The tool asks a controller about brokers alone: it looks for the names of others at brokers.
    described = run_tool(
        CONFIGS, gateway, ["--describe", "--entity-type", "brokers", "--entity-default"], is_controller=True
    )
    assert "min.insync.replicas=2" in described
    wait_until(
        lambda: "producer_byte_rate=1000.0" in cluster.tool(CONFIGS, "--describe --entity-type clients"),
        "a broker to know the quota",
    )
    throttled: list[Any] = []
    cluster.create(NewTopic("throttled", 1, 1))
    conf = {"bootstrap.servers": cluster.bootstrap, "client.id": "slow", "message.timeout.ms": 60_000}
    producer = Producer(conf | {"throttle_cb": throttled.append})
    producer.produce("throttled", bytes(100_000))
    assert producer.flush(TIMEOUT_S) == 0
    wait_until(lambda: producer.poll(0) >= 0 and bool(throttled), "the broker to throttle the client")


def test_a_share_group_reads_once_its_feature_is_raised(cluster: RealCluster) -> None:
    cluster.tool(FEATURES, "upgrade --feature share.version=1")
    wait_until(
        lambda: re.search(r"share.version\s.*FinalizedVersionLevel: 1", cluster.tool(FEATURES, "describe")),
        "a broker to know the level",
    )
    with pytest.raises(ToolError, match=r"eligible\.leader\.replicas\.version"):
        cluster.tool(FEATURES, "upgrade --feature eligible.leader.replicas.version=1")
    cluster.tool(
        CONFIGS, "--alter --add-config share.auto.offset.reset=earliest --entity-type groups --entity-name sharing"
    )
    cluster.create(NewTopic("shared", 1, 2))
    produce(cluster, "shared", [b"one", b"two"])
    read = cluster.tool(
        "consumer.ConsoleShareConsumer", "--topic shared --group sharing --max-messages 2 --timeout-ms 60000"
    )
    assert read.split() == ["one", "two"]


def test_a_topic_of_a_dead_broker_is_deleted_and_its_name_is_free(cluster: RealCluster) -> None:
    """The broker comes back with the old topic's log, sets it aside, and serves only the new topic's records."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    old = NewTopic("ghost", 1, replica_assignment=[[3, 1]])
    admin.create_topics([old])["ghost"].result(TIMEOUT_S)
    cluster.wait_for_isr("ghost", 2)
    produce(cluster, "ghost", [b"old"] * 20)
    cluster.broker(3).kill()
    cluster.wait_for_the_end_of(3)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics(["ghost"])["ghost"].result(TIMEOUT_S)
    wait_until(lambda: cluster.partitions("ghost") == {}, "the topic to be gone")
    new = NewTopic("ghost", 1, replica_assignment=[[1, 2]])
    admin.create_topics([new])["ghost"].result(TIMEOUT_S)
    records = [b"new %d" % number for number in range(5)]
    produce(cluster, "ghost", records)
    cluster.restart(3)
    log = cluster.broker(3).folder / "data-0" / "ghost-0"
    assert not log.exists(), "the stray log was set aside"
    moved: Any = Partition("ghost", 0)
    movers = KafkaAdminClient(bootstrap_servers=cluster.bootstrap.split(","))
    try:
        assert movers.alter_partition_reassignments({moved: [3]}) == {moved: None}
    finally:
        movers.close()
    wait_until(lambda: cluster.partitions("ghost")[0]["replicas"] == (3,), "the topic to be on broker 3 alone")
    assert consume(cluster, "ghost", len(records) + 1) == records


def produce(cluster: RealCluster, topic: str, records: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "message.timeout.ms": 30_000})
    for record in records:
        producer.produce(topic, record)
    assert producer.flush(TIMEOUT_S) == 0


def consume(cluster: RealCluster, topic: str, count: int) -> list[bytes | None]:
    """Read from the beginning until ``count`` records or the end have come."""
    config = {"bootstrap.servers": cluster.bootstrap, "group.id": "none", "enable.partition.eof": True}
    consumer = Consumer(config | {"enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        found: list[bytes | None] = []
        while len(found) < count:
            message = consumer.poll(TIMEOUT_S)
            assert message is not None, "neither a record nor the end in time"
            if (error := message.error()) is not None:
                assert error.code() == KafkaError._PARTITION_EOF, error
                break
            found.append(message.value())
        return found
    finally:
        consumer.close()


def test_a_topic_without_sizes_gets_those_of_the_engine(cluster: RealCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("sized")])["sized"].result(TIMEOUT_S)
    assert [len(held["replicas"]) for held in cluster.partitions("sized").values()] == [2, 2, 2]


def test_brokers_keep_to_the_engines_min_isr(cluster: RealCluster) -> None:
    """With one replica in sync they refuse writes by the topic's setting, until the engine's setting allows them."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    own = {"min.insync.replicas": "1"}
    wanted = [
        NewTopic("safe", 1, replica_assignment=[[1, 2]]),
        NewTopic("own", 1, replica_assignment=[[1, 2]], config=own),
    ]
    for future in admin.create_topics(wanted).values():
        future.result(TIMEOUT_S)
    for topic in ("safe", "own"):
        cluster.wait_for_isr(topic, 2)
        assert refusal_of_a_write(cluster, topic) is None
    cluster.broker(2).kill()
    wait_until(lambda: cluster.partitions("safe")[0]["isr"] == (1,), "one member to be left in the ISR")
    assert refusal_of_a_write(cluster, "own") is None
    # A write that the leader takes before it has heard of the ISR waits for the other member in vain.
    wait_until(lambda: refusal_of_a_write(cluster, "safe") == "NOT_ENOUGH_REPLICAS", "the leader to refuse writes")
    for value in ("1", None):
        alter = {"kind": "alter_config", "time_ms": now_ms(), "entity": "cluster"}
        cluster.bus.publish([json.dumps(alter | {"config": {"min.insync.replicas": value}}).encode()])
        refusal = None if value else "NOT_ENOUGH_REPLICAS"
        wait_until(lambda wanted=refusal: refusal_of_a_write(cluster, "safe") == wanted, f"refusal {refusal}")  # type: ignore[misc]
    cluster.restart(2)
    cluster.wait_for_isr("safe", 2)
    wait_until(lambda: refusal_of_a_write(cluster, "safe") is None, "writes to be taken again")


def refusal_of_a_write(cluster: RealCluster, topic: str) -> str | None:
    """Write a record once, to the current leader; return the error that refuses it."""
    errors: list[KafkaError | None] = []
    fields = {"acks": "all", "retries": 0, "message.timeout.ms": 30_000}
    producer = Producer({"bootstrap.servers": cluster.bootstrap} | fields)
    producer.produce(topic, b"record", on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    [error] = errors
    return None if error is None else str(error.name())


def test_settings_are_altered_step_by_step(cluster: RealCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("set", 1, 3)])["set"].result(TIMEOUT_S)
    for operation, value in [
        (AlterConfigOpType.SET, "compact"),
        (AlterConfigOpType.APPEND, "delete"),
        (AlterConfigOpType.SUBTRACT, "compact"),
    ]:
        entry = ConfigEntry("cleanup.policy", value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, "set", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    [topic] = [held for held in cluster.view()["topics"] if held["topic"] == "set"]
    assert topic["config"] == {"cleanup.policy": "delete"}
    resource = ConfigResource(ResourceType.TOPIC, "set")

    def as_brokers_say() -> bool:
        entry = admin.describe_configs([resource])[resource].result(TIMEOUT_S)["cleanup.policy"]
        return bool(entry.value == "delete" and not entry.is_default)

    wait_until(as_brokers_say, "the brokers to have the setting")


def test_the_engines_refusals_have_kafkas_wording(cluster: RealCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("twice", 1, 1)])["twice"].result(TIMEOUT_S)
    for topic, code in [
        (NewTopic("twice", 1, 1), "TOPIC_ALREADY_EXISTS"),
        (NewTopic("wide", 1, 9), "INVALID_REPLICATION_FACTOR"),
    ]:
        error = admin.create_topics([topic])[topic.topic].exception(TIMEOUT_S)
        assert error is not None
        assert error.args[0].name() == code
    error = admin.delete_topics(["nowhere"])["nowhere"].exception(TIMEOUT_S)
    assert error is not None
    assert error.args[0].name() == "UNKNOWN_TOPIC_OR_PART"
    assert "wide" not in {held["topic"] for held in cluster.view()["topics"]}
