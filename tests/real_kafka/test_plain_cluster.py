"""Brokers of real Kafka, run by the command line: start, produce, kill, start again, consume, stop."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.service import ServiceError
from tests.support.cluster_command import on_cluster
from tests.support.waiting import TIMEOUT_S

pytestmark = pytest.mark.kraft
RECORDS = 200


def produce(bootstrap: str, first: int) -> None:
    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True})
    for number in range(first, first + RECORDS):
        producer.produce(
            "t", str(number).encode(), on_delivery=lambda error, _: failed.append(error) if error else None
        )
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []


def consume(bootstrap: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    values: list[int] = []
    try:
        while len(values) < count:
            taken = consumer.consume(count, timeout=TIMEOUT_S)
            assert taken, f"only {len(values)} of {count} records came"
            values += [int(message.value() or b"") for message in taken if message.error() is None]
    finally:
        consumer.close()
    return values


def test_records_outlive_a_killed_broker(cluster_folder: Path) -> None:
    code, said = on_cluster(cluster_folder, "up", "--plain", "--brokers", "2", "--heap", "384m")
    assert code == 0, said
    found = KafkaCluster.open(cluster_folder)
    assert said.split(": ")[-1].strip() == found.bootstrap
    admin = AdminClient({"bootstrap.servers": found.bootstrap})
    admin.create_topics([NewTopic("t", 2, 2)], operation_timeout=TIMEOUT_S)["t"].result(TIMEOUT_S)
    produce(found.bootstrap, 0)

    found.nodes[2].kill()
    code, said = on_cluster(cluster_folder, "status", "--format", "json")
    assert code == 3
    states = {node["node"]: node["state"] for node in json.loads(said.splitlines()[0])["nodes"]}
    assert states == {1: "running", 2: "stopped"}
    assert on_cluster(cluster_folder, "up", "--plain", "--brokers", "3")[0] == 2, (
        "an existing cluster is not created again"
    )
    # An ``up`` that is killed just after it started the broker leaves the broker running.
    found.nodes[2].start()
    code, said = on_cluster(cluster_folder, "up")
    assert code == 0, said
    assert KafkaCluster.open(cluster_folder).nodes[2].is_ready(), "the broker is waited for, no matter who started it"
    produce(found.bootstrap, RECORDS)
    assert sorted(consume(found.bootstrap, 2 * RECORDS)) == list(range(2 * RECORDS))

    assert on_cluster(cluster_folder, "status")[0] == 0
    code, said = on_cluster(cluster_folder, "down", "--delete")
    assert (code, said[:9]) == (0, "stopped: ")
    assert not cluster_folder.exists()


def test_a_node_that_does_not_start_says_why_and_leaves_nothing_running(cluster_folder: Path) -> None:
    code, said = on_cluster(cluster_folder, "up", "--plain", "--brokers", "1", "--set", "log.retention.bytes=plenty")
    assert code == 3
    assert "log.retention.bytes" in said
    assert KafkaCluster.open(cluster_folder).nodes[1].state == "stopped"


def test_a_frozen_node_is_paused_and_stops_in_the_end(cluster_folder: Path) -> None:
    assert on_cluster(cluster_folder, "up", "--plain", "--brokers", "1", "--heap", "384m")[0] == 0
    node = KafkaCluster.open(cluster_folder).nodes[1]
    with pytest.raises(ServiceError, match="already runs"):
        node.start()
    node.pause()
    end = time.monotonic() + TIMEOUT_S
    while node.state != "paused":
        assert time.monotonic() < end
    node.terminate()
    assert node.state == "paused", "a frozen process does not stop cleanly"
    assert on_cluster(cluster_folder, "down", "--delete")[0] == 0
