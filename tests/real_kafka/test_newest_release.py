"""What the newest release of Kafka adds works behind a gateway: cordoning, share and streams groups, dead letters."""

import json
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from brokers.launch.kafka.tools import CONFIGS, ToolError
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from conf.kafka_versions import KAFKA_VERSIONS
from tests.real_kafka.broker_requests import ask
from tests.real_kafka.test_metadata_versions import die_and_return, levels, levels_in, up
from tests.support.clients import read_all
from tests.support.real_cluster import POLICY
from tests.support.rules_engine import RulesEngine
from tests.support.up_cluster import UpCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kraft, pytest.mark.timeout(900)]
*_, NEWEST = KAFKA_VERSIONS.values()
RECORDS = 20
# COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
AWAY = (14, 15, 16)
GROUP, MEMBER = "sums", "AAAAAAAAAAAAAAAAAAAAAQ"


def test_the_newest_release_does_what_is_new_in_it(
    cluster_folder: Path, tmp_path: Path, next_engine: RulesEngine
) -> None:
    next_engine.start(tmp_path / "bus.db", **POLICY)
    with up(cluster_folder, tmp_path / "bus.db", "--kafka", NEWEST.number, brokers=2) as cluster:
        assert levels(cluster) == levels_in(NEWEST.release)
        a_cordoned_broker_gets_no_replicas(cluster)
        a_share_group_reads_every_record(cluster)
        rejected_records_go_to_the_dead_letter_queue(cluster)
        a_streams_group_gets_its_tasks(cluster)
        die_and_return(cluster, 1)


def a_cordoned_broker_gets_no_replicas(cluster: UpCluster) -> None:
    def cordoned() -> bool:
        [broker] = [one for one in cluster.view()["brokers"] if one["broker"] == 1]
        return bool(broker.get("cordoned_log_dirs"))

    setting = "--entity-type brokers --entity-name 1 --alter"
    with pytest.raises(ToolError):
        cluster.tool(CONFIGS, f"{setting} --add-config cordoned.log.dirs=/elsewhere")
    cluster.tool(CONFIGS, f"{setting} --add-config cordoned.log.dirs=*")
    wait_until(cordoned, "the broker to say that its directory is cordoned")
    cluster.create(NewTopic("elsewhere", 6, 1))
    assert {replicas for held in cluster.served("elsewhere").values() for replicas in held.replicas} == {2}
    cluster.tool(CONFIGS, f"{setting} --delete-config cordoned.log.dirs")
    wait_until(lambda: not cordoned(), "the broker to say that it is cordoned no more")
    cluster.create(NewTopic("anywhere", 6, 1))
    assert {replicas for held in cluster.served("anywhere").values() for replicas in held.replicas} == {1, 2}


def a_share_group_reads_every_record(cluster: UpCluster) -> None:
    cluster.create(NewTopic("shared", 2, 2))
    cluster.tool("VerifiableProducer", f"--topic shared --max-messages {RECORDS} --acks -1")
    reading = f"--topic shared --group-id sharing --max-messages {RECORDS} --offset-reset-strategy earliest"
    told = [
        json.loads(line) for line in cluster.tool("VerifiableShareConsumer", reading).splitlines() if line[:1] == "{"
    ]
    acknowledged = sum(one["count"] for one in told if one["name"] == "offsets_acknowledged")
    assert acknowledged >= RECORDS, told


def rejected_records_go_to_the_dead_letter_queue(cluster: UpCluster) -> None:
    """Brokers write them there if the group names a topic that allows it (KIP-1191)."""
    cluster.create(NewTopic("orders", 1, 2))
    cluster.create(NewTopic("dlq.orders", 1, 2, config={"errors.deadletterqueue.group.enable": "true"}))
    settings = "errors.deadletterqueue.topic.name=dlq.orders,share.auto.offset.reset=earliest"
    cluster.tool(CONFIGS, f"--entity-type groups --entity-name rejecting --alter --add-config {settings}")
    cluster.tool("VerifiableProducer", f"--topic orders --max-messages {RECORDS} --acks -1")
    reading = f"--topic orders --group rejecting --reject --max-messages {RECORDS}"
    cluster.tool("consumer.ConsoleShareConsumer", reading)
    wait_until(lambda: len(read_all(cluster.bootstrap, "dlq.orders", 1)) == RECORDS, "the rejected records")


def a_streams_group_gets_its_tasks(cluster: UpCluster) -> None:
    """A member of a streams group is given the tasks of its topology (KIP-1071)."""
    cluster.create(NewTopic("summed", 3, 2))
    topology = [{"SubtopologyId": "0", "SourceTopics": ["summed"]}]
    epoch, active = 0, set[int]()

    def has_tasks() -> bool:
        nonlocal epoch
        for node in cluster.kafka.nodes.values():
            answer: Values = ask(
                NEWEST,
                node.spec.port or 0,
                "StreamsGroupHeartbeat",
                0,
                GroupId=GROUP,
                MemberId=MEMBER,
                MemberEpoch=epoch,
                RebalanceTimeoutMs=60_000,
                Topology={"Epoch": 0, "Subtopologies": topology} if epoch == 0 else None,
                ActiveTasks=[] if epoch == 0 else None,
                StandbyTasks=[] if epoch == 0 else None,
                WarmupTasks=[] if epoch == 0 else None,
                ProcessId="p" if epoch == 0 else None,
            )
            if answer["ErrorCode"] in AWAY:
                continue
            assert answer["ErrorCode"] == ErrorCode.NONE, answer
            epoch = answer["MemberEpoch"]
            active.update(task for one in answer["ActiveTasks"] or () for task in one["Partitions"])
        return active == {0, 1, 2}

    wait_until(has_tasks, "the group to give the member its tasks")
