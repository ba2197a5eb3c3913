"""An engine leads one Kafka cluster from a bus on another one: `isrflow cluster` from start to end."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.tools import TOPICS, run_tool
from bus.image import view_of_image
from bus.open_bus import open_bus
from cli import command
from cli.cluster.led_cluster import LedCluster
from conf.jars import fetch
from tests.support.clients import ConfluentSender, read_all
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(600)]
TOPIC, PARTITIONS = "led", 4
RECORDS = 200
TIMEOUT_S = 120.0


def isrflow(*arguments: str) -> str:
    """Run a command that must succeed, and return its output."""
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def led(kafka_url: str, tmp_path: Path) -> Iterator[LedCluster]:
    for jars in ("kafka-broker", "kafka-tools"):
        fetch(jars)
    folder = tmp_path / "kafka"
    isrflow("cluster", "up", "--brokers", "2", "--heap", "384m", "--bus", kafka_url, "--dir", str(folder))
    led = LedCluster.open(KafkaCluster.open(folder))
    assert led is not None
    yield led
    led.kill()


def send(led: LedCluster, name: str) -> ConfluentSender:
    """Write records that every in-sync replica acknowledges."""
    sender = ConfluentSender(led.kafka.bootstrap)
    for number in range(RECORDS):
        sender.send(TOPIC, number % PARTITIONS, f"{name} {number}".encode())
    sender.finish(TIMEOUT_S)
    assert sender.failed == []
    return sender


def test_a_cluster_works_with_its_bus_on_another_kafka(led: LedCluster, kafka_url: str) -> None:
    status = json.loads(isrflow("cluster", "status", "--format", "json", "--dir", str(led.folder)).splitlines()[0])
    assert status["engine"]["decides"]
    assert [row["decided"] for row in status["nodes"]] == ["active", "active"]
    create = f"--create --topic {TOPIC} --partitions {PARTITIONS} --replication-factor 2"
    run_tool(TOPICS, led.kafka.bootstrap, create.split())
    sent = send(led, "before").acknowledged

    led.kafka.nodes[1].kill()
    bus = open_bus(kafka_url, create=False)
    try:

        def moved() -> bool:
            return {held["leader"] for held in view_of_image(bus.image())["partitions"]} == {2}

        wait_until(moved, "the other broker to lead", TIMEOUT_S)
        sent |= send(led, "without one").acknowledged
        # A restarted gateway does not rewrite its log on disk.
        for gateway in led.gateways.values():
            gateway.kill()
        for gateway in led.gateways.values():
            gateway.start()
        for gateway in led.gateways.values():
            gateway.wait_until_started()
        led.kafka.nodes[1].start()
        led.kafka.nodes[1].wait_until_started()

        def in_sync() -> bool:
            return all(len(held["isr"]) == 2 for held in view_of_image(bus.image())["partitions"])

        wait_until(in_sync, "both to be in sync", TIMEOUT_S)
    finally:
        bus.close()
    sent |= send(led, "after").acknowledged
    read = {record.value: (record.partition, record.offset) for record in read_all(led.kafka.bootstrap, TOPIC, 4)}
    assert read == sent
    assert TOPIC in isrflow("describe", "--bus", kafka_url)
    isrflow("cluster", "down", "--dir", str(led.folder))
    assert [service.name for service in led.services if service.state != "stopped"] == []
