"""Kafka's own admin tools ask for things, and describe them as the engine does."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.support.mock_cluster import wait_until
from tests.support.real_cluster import RealCluster
from tests.support.rules_engine import RulesEngine

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def engine() -> Iterator[RulesEngine]:
    """The rules alone, for what the job makes of them is told by other tests."""
    engine = RulesEngine()
    yield engine
    engine.stop()


def reassignment(path: Path, **replicas: list[int]) -> str:
    listed = [{"topic": "moved", "partition": int(key[1:]), "replicas": value} for key, value in replicas.items()]
    path.write_text(json.dumps({"version": 1, "partitions": listed}))
    return str(path)


def test_a_topic_from_its_creation_to_its_deletion(cluster: RealCluster) -> None:
    cluster.tool("TopicCommand", "--create --topic life --partitions 2 --replication-factor 3")
    cluster.agree("life")
    cluster.tool("TopicCommand", "--alter --topic life --partitions 4")
    cluster.agree("life")
    assert set(cluster.partitions("life")) == {0, 1, 2, 3}
    cluster.tool("TopicCommand", "--delete --topic life")
    wait_until(lambda: cluster.partitions("life") == {}, "the topic to be gone")
    folders = [node.folder for node in cluster.kafka.nodes.values()]
    wait_until(lambda: not any([*folder.glob("data-*/life-[0-9]")] for folder in folders), "its logs to be gone")


def test_replicas_are_moved_and_leaders_are_elected(cluster: RealCluster, tmp_path: Path) -> None:
    cluster.tool("TopicCommand", "--create --topic moved --replica-assignment 1:2,2:3")
    plan = reassignment(tmp_path / "plan.json", p0=[3, 2], p1=[1, 2])
    cluster.tool("reassign.ReassignPartitionsCommand", f"--execute --reassignment-json-file {plan}")
    wait_until(
        lambda: {held["replicas"] for held in cluster.partitions("moved").values()} == {(3, 2), (1, 2)},
        "the replicas to have moved",
    )
    told = cluster.tool("reassign.ReassignPartitionsCommand", f"--verify --reassignment-json-file {plan}")
    assert told.count("is completed") == 2
    cluster.agree("moved")
    wait_until(lambda: not (cluster.broker(1).folder / "data-0" / "moved-0").exists(), "the replica left to be deleted")
    cluster.wait_for_isr("moved", 2)
    cluster.tool("LeaderElectionCommand", "--election-type preferred --all-topic-partitions")
    assert {number: held["leader"] for number, held in cluster.partitions("moved").items()} == {0: 3, 1: 1}
    cluster.agree("moved")


def test_settings_are_altered_step_by_step(cluster: RealCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("set", 1, 3)])["set"].result(30)
    for operation, value in [
        (AlterConfigOpType.SET, "compact"),
        (AlterConfigOpType.APPEND, "delete"),
        (AlterConfigOpType.SUBTRACT, "compact"),
    ]:
        entry = ConfigEntry("cleanup.policy", value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, "set", incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)
    [topic] = [held for held in cluster.view()["topics"] if held["topic"] == "set"]
    assert topic["config"] == {"cleanup.policy": "delete"}
    resource = ConfigResource(ResourceType.TOPIC, "set")

    def as_brokers_say() -> bool:
        entry = admin.describe_configs([resource])[resource].result(30)["cleanup.policy"]
        return bool(entry.value == "delete" and not entry.is_default)

    wait_until(as_brokers_say, "the brokers to have the setting")


def test_what_the_engine_refuses_is_refused_in_kafkas_words(cluster: RealCluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic("twice", 1, 1)])["twice"].result(30)
    for topic, code in [
        (NewTopic("twice", 1, 1), "TOPIC_ALREADY_EXISTS"),
        (NewTopic("wide", 1, 9), "INVALID_REPLICATION_FACTOR"),
    ]:
        error = admin.create_topics([topic])[topic.topic].exception(30)
        assert error is not None
        assert error.args[0].name() == code
    error = admin.delete_topics(["nowhere"])["nowhere"].exception(30)
    assert error is not None
    assert error.args[0].name() == "UNKNOWN_TOPIC_OR_PART"
    assert "wide" not in {held["topic"] for held in cluster.view()["topics"]}
