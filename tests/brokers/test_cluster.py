"""Clusters of broker processes: leaders that die, freeze, stop and come back."""

import json
import time
from pathlib import Path
from typing import Any

import kafka
import pytest
from kafka.protocol.producer import ProduceRequest

from brokers.wire.batch_header import batches_in
from brokers.wire.errors import ErrorCode
from cli.demo import traffic
from tests.support.batches import batch
from tests.support.clients import ConfluentSender, KafkaPythonSender, read_all
from tests.support.mock_cluster import MockCluster
from tests.support.raw import RawClient
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.mock_brokers


def produced(cluster: MockCluster, broker: int, value: bytes, acks: int = -1, timeout_ms: int = 60_000) -> Any:
    """Produce one record to partition 0 of ``t`` at ``broker``, once it knows that it leads or that ``t`` is gone."""

    def answer() -> Any:
        answer = produced_once(cluster, broker, value, acks, timeout_ms)
        held = cluster.partitions("t")
        not_yet = answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER and (not held or held[0]["leader"] == broker)
        return None if not_yet else answer

    return wait_until(answer, f"broker {broker} to hear that it leads")


def produced_once(cluster: MockCluster, broker: int, value: bytes, acks: int, timeout_ms: int) -> Any:
    data = ProduceRequest.TopicProduceData
    entry = data.PartitionProduceData(index=0, records=batch(value))
    body = ProduceRequest(
        version=9, acks=acks, timeout_ms=timeout_ms, topic_data=[data(name="t", partition_data=[entry])]
    )
    client = RawClient.to(cluster.folder(broker))
    try:
        return client.ask(body).responses[0].partition_responses[0]
    finally:
        client.close()


def logs_of(cluster: MockCluster, broker: int, partition: int = 0) -> bytes:
    folder = cluster.folder(broker) / f"t-{partition}"
    return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))


def wait_for_like_logs(cluster: MockCluster, brokers: tuple[int, ...]) -> None:
    wait_until(lambda: len({logs_of(cluster, broker) for broker in brokers}) == 1, "the logs to be alike")


def events_logged(cluster: MockCluster, broker: int, event: str) -> list[dict[str, Any]]:
    lines = (cluster.directory / f"broker-{broker}.log").read_text().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return [one for one in events if one["event"] == event]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_what_is_produced_is_read(cluster: MockCluster, acks: str) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3], "1": [2, 3, 1]})
    sender = ConfluentSender(cluster.bootstrap(), **{"acks": acks, "enable.idempotence": False})
    sent = [b"%d" % number for number in range(500)]
    for number, value in enumerate(sent):
        sender.send("t", number % 2, value)
    sender.finish(TIMEOUT_S)
    wait_until(lambda: len(read_all(cluster.bootstrap(), "t", 2)) == 500, "all records to be readable")
    read = read_all(cluster.bootstrap(), "t", 2)
    assert [r.value for r in sorted(read, key=lambda r: (r.offset, r.partition))] == sent


def test_kafka_python_works_without_settings(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    sender = KafkaPythonSender(cluster.bootstrap())
    for number in range(200):
        sender.send("t", 0, b"%d" % number)
    sender.finish(TIMEOUT_S)
    assert (len(sender.acknowledged), sender.failed) == (200, [])
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=cluster.bootstrap().split(","),
        group_id=None,
        auto_offset_reset="earliest",
        consumer_timeout_ms=2_000,
    )
    consumer.assign([kafka.TopicPartition("t", 0)])
    assert [int(record.value) for record in consumer] == list(range(200))
    consumer.close()


def test_a_killed_leader_leaves_the_isr_and_comes_back(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    assert produced(cluster, 1, b"before").error_code == 0
    cluster.kill(1)
    wait_until(lambda: cluster.leader("t", 0) == 2, "broker 2 to lead")
    assert set(cluster.partitions("t")[0]["isr"]) == {2, 3}
    assert produced(cluster, 2, b"between").error_code == 0
    cluster.start(1)
    cluster.wait_for_isr("t", 3)
    assert produced(cluster, 2, b"after").error_code == 0
    wait_for_like_logs(cluster, (1, 2, 3))
    assert [r.value for r in read_all(cluster.bootstrap(), "t", 1)] == [b"before", b"between", b"after"]


def test_the_demo_reads_everything_back_without_one_of_its_bootstrap_brokers(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    sender = ConfluentSender(cluster.bootstrap())
    for number in range(50):
        sender.send("t", 0, b"%d" % number)
    sender.finish(TIMEOUT_S)
    cluster.kill(3)
    # It asks a random broker, whose answer still lists the dead one until that one's session ends.
    for _ in range(6):
        read = traffic.read_all(cluster.bootstrap().split(","), "t", {0: 50})
        assert [number for _, number in read[0]] == list(range(50))


def test_a_clean_stop_hands_over_and_is_known_at_the_next_start(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3], "1": [1, 3, 2]})
    assert cluster.terminate(1) == 0
    assert [p["leader"] for p in cluster.partitions("t")] == [2, 3]
    assert events_logged(cluster, 1, "stopped")[-1]["handed_over"] is True
    marker = json.loads((cluster.folder(1) / ".kafka_cleanshutdown").read_text())
    cluster.start(1)
    registered = [json.loads(e.raw) for e in cluster.bus.read(0, cluster.bus.last_seq())]
    last = [e for e in registered if e["kind"] == "broker_register" and e["broker"] == 1][-1]
    assert last["previous_broker_epoch"] == marker["brokerEpoch"]
    assert not (cluster.folder(1) / ".kafka_cleanshutdown").exists()
    cluster.wait_for_isr("t", 3)


def test_min_isr_is_respected(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]}, min_insync_replicas="2")
    cluster.kill(2)
    cluster.kill(3)
    cluster.wait_for_isr("t", 1)
    wait_until(
        lambda: produced(cluster, 1, b"x").error_code == ErrorCode.NOT_ENOUGH_REPLICAS, "the leader to hear of it"
    )
    assert produced(cluster, 1, b"weak", acks=1).error_code == 0
    cluster.start(2)
    cluster.wait_for_isr("t", 2)
    wait_until(lambda: produced(cluster, 1, b"strong").error_code == 0, "acks=all to be possible again")


def test_a_frozen_leader_wakes_up_fenced(cluster: MockCluster) -> None:
    """Records that it accepts while it believes that it still leads are never acknowledged, and are truncated."""
    cluster.create_topic("t", {"0": [1, 2, 3]})
    assert produced(cluster, 1, b"kept").error_code == 0
    cluster.freeze(1)
    wait_until(lambda: cluster.leader("t", 0) == 2, "broker 2 to lead")
    assert produced(cluster, 2, b"new").error_code == 0
    cluster.thaw(1)
    assert produced(cluster, 1, b"lost", timeout_ms=2_000).error_code != 0
    cluster.wait_for_isr("t", 3)
    wait_for_like_logs(cluster, (1, 2, 3))
    assert [r.value for r in read_all(cluster.bootstrap(), "t", 1)] == [b"kept", b"new"]


def test_a_returning_leader_drops_records_that_nobody_else_has(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    assert produced(cluster, 1, b"kept").error_code == 0
    cluster.freeze(2)
    cluster.freeze(3)
    for number in range(5):
        assert produced(cluster, 1, b"lost %d" % number, acks=1).error_code == 0
    cluster.kill(1)
    cluster.thaw(2)
    cluster.thaw(3)
    wait_until(lambda: cluster.leader("t", 0) in (2, 3), "another leader")
    assert len(list(batches_in(logs_of(cluster, 1)))) == 6
    wait_until(lambda: produced(cluster, cluster.leader("t", 0), b"new").error_code == 0, "the new leader to serve")
    cluster.start(1)
    cluster.wait_for_isr("t", 3)
    wait_for_like_logs(cluster, (1, 2, 3))
    assert events_logged(cluster, 1, "truncated")
    read = [r.value for r in read_all(cluster.bootstrap(), "t", 1)]
    # The first record may already have been on its way when the followers froze.
    assert [value for value in read if value != b"lost 0"] == [b"kept", b"new"]


def test_after_an_unclean_election_the_longer_log_is_truncated(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2]}, unclean_leader_election_enable="true")
    assert produced(cluster, 1, b"both").error_code == 0
    cluster.kill(2)
    cluster.wait_for_isr("t", 1)
    wait_until(lambda: produced(cluster, 1, b"alone").error_code == 0, "the ISR of one to do")
    cluster.kill(1)
    wait_until(lambda: cluster.leader("t", 0) == -1, "nobody to lead")
    cluster.start(2)
    wait_until(lambda: cluster.leader("t", 0) == 2, "the unclean leader")
    wait_until(lambda: cluster.partitions("t")[0]["high_watermark"] == 1, "the high watermark to go back")
    assert produced(cluster, 2, b"new").error_code == 0
    wait_until(lambda: cluster.partitions("t")[0]["leader_recovery_state"] == "RECOVERED", "the leader to recover")
    cluster.start(1)
    cluster.wait_for_isr("t", 2)
    wait_for_like_logs(cluster, (1, 2))
    assert [r.value for r in read_all(cluster.bootstrap(), "t", 1)] == [b"both", b"new"]


def test_killing_all_brokers_at_once_loses_nothing(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    for number in range(20):
        assert produced(cluster, 1, b"%d" % number).error_code == 0
    for broker in cluster.brokers:
        cluster.kill(broker)
    cluster.start()
    cluster.wait_for_isr("t", 3)
    assert [int(r.value) for r in read_all(cluster.bootstrap(), "t", 1)] == list(range(20))


def test_a_second_process_of_the_same_id_replaces_the_first(cluster: MockCluster) -> None:
    first = cluster.pid(1)
    process = cluster.disown(1)
    cluster.launch(1, cluster.directory / "moved")
    assert process.wait(TIMEOUT_S) == 1
    assert cluster.pid(1) != first


def test_a_live_broker_that_is_unregistered_returns_to_the_isr(cluster: MockCluster) -> None:
    """It registers again in the same process, and its fetches count only under the new broker epoch."""
    cluster.create_topic("t", {"0": [1, 2, 3]}, min_insync_replicas="3")
    before = cluster.active()[3]
    cluster.publish("broker_unregister", broker=3)
    wait_until(lambda: cluster.active().get(3, before) != before, "broker 3 to register again")
    cluster.wait_for_isr("t", 3, TIMEOUT_S)
    wait_until(lambda: produced(cluster, 1, b"x").error_code == 0, "acks=all to be possible again")


def test_brokers_outlive_their_engine(tmp_path: Path) -> None:
    one, other = RulesEngine(), RulesEngine()
    cluster = MockCluster(tmp_path)
    one.start(cluster.bus_path, broker_session_timeout_ms=2_000)
    try:
        cluster.start()
        cluster.create_topic("t", {"0": [1, 2, 3]})
        one.stop()
        assert produced(cluster, 1, b"x", timeout_ms=500).error_code == ErrorCode.REQUEST_TIMED_OUT
        time.sleep(2.5)  # longer than a session: heartbeats wait on the bus meanwhile
        other.start(cluster.bus_path, broker_session_timeout_ms=2_000)
        wait_until(lambda: produced(cluster, cluster.leader("t", 0), b"y").error_code == 0, "acks=all again")
    finally:
        cluster.stop()
        one.stop()
        other.stop()


def test_a_deleted_topic_leaves_nothing_and_comes_back_empty(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    assert produced(cluster, 1, b"old").error_code == 0
    cluster.publish("delete_topic", topic="t")
    folders = [cluster.folder(broker) / "t-0" for broker in cluster.brokers]
    wait_until(lambda: not any(folder.exists() for folder in folders), "the logs to go")
    wait_until(lambda: cluster.partitions("t") == [], "the topic to go")
    assert produced(cluster, 1, b"x").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cluster.create_topic("t", {"0": [2, 3, 1]})
    assert produced(cluster, 2, b"new").error_code == 0
    assert [r.value for r in read_all(cluster.bootstrap(), "t", 1)] == [b"new"]


def test_a_broker_that_missed_a_recreated_topic_sets_the_old_log_aside(cluster: MockCluster) -> None:
    cluster.create_topic("t", {"0": [1, 2, 3]})
    assert produced(cluster, 1, b"old").error_code == 0
    cluster.kill(3)
    wait_until(lambda: 3 not in cluster.active(), "broker 3 to be fenced")
    cluster.publish("delete_topic", topic="t")
    cluster.start(3)
    wait_until(lambda: cluster.partitions("t") == [], "the topic to go")
    assert not (cluster.folder(3) / "t-0").exists()
