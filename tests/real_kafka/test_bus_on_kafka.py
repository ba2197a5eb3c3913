"""An engine leads one Kafka cluster from a bus on another one: `isrflow cluster` from start to end."""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from brokers.launch.kafka.cluster import KafkaCluster
from brokers.launch.kafka.tools import TOPICS, run_tool
from bus.image import view_of_image
from bus.open_bus import open_bus
from cli.cluster.led_cluster import LedCluster
from cli.commands import command
from conf.jars import fetch
from tests.support.clients import ConfluentSender, lost_records, read_all
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = [pytest.mark.kafka_bus, pytest.mark.kraft, pytest.mark.spark]
TOPIC, PARTITIONS = "led", 4
RECORDS = 200


def isrflow(*arguments: str) -> str:
    """Run a command that must succeed, and return its output."""
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


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


def lines_of(*arguments: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in isrflow(*arguments).splitlines()]


def fenced(kafka_url: str) -> dict[str, Any]:
    """Return the newest decision by which a partition lost its leader to a fence."""
    about = ("--since", "1h", "--topic", TOPIC, "--reason", "LEADER_FENCED")
    return lines_of("decisions", "--bus", kafka_url, *about)[-1]


def the_past_is_told(kafka_url: str, folder: Path) -> None:
    """Check what the commands say of the past, and that the log can be decided again."""
    bus = ("--bus", kafka_url)
    moved = fenced(kafka_url)
    explained = isrflow("partitions", "explain", f"{TOPIC}-{moved['partition']}", *bus)
    assert "Rule LEADER_FENCED" in explained
    assert "Broker 1 was passed over because it was fenced." in explained

    def leaders(seq: int) -> set[int]:
        state = json.loads(isrflow("describe", "--at", str(seq), "--format", "json", *bus))
        return {partition["leader"] for partition in state["partitions"]}

    assert (leaders(moved["seq"] - 1), leaders(moved["seq"])) == ({1, 2}, {2})
    span = ("--from", str(moved["seq"]), "--to", str(moved["seq"]))
    assert [event["seq"] for event in lines_of("events", *span, *bus)] == [moved["seq"]]
    assert len(isrflow("decisions", "--tail", "3", "--format", "text", *bus).splitlines()) == 3
    # A report of a log end has no seq of its own on Kafka, and is decided again all the same.
    report = {"kind": "log_end_offset", "topic": TOPIC, "partition": 0, "broker": 99, "log_end_offset": 7}
    (folder / "report.jsonl").write_text(json.dumps(report | {"time_ms": moved["time_ms"], "leader_epoch": 0}))
    isrflow("publish", str(folder / "report.jsonl"), *bus)
    wait_until(lambda: lines_of("events", "--kind", "log_end_offset", *bus), "the report to be taken in")
    taken = lines_of("events", "--kind", "log_end_offset", *bus)[-1]["seq"]
    wait_until(lambda: json.loads(isrflow("describe", "--format", "json", *bus))["seq"] > taken, "a batch")
    last = json.loads(isrflow("describe", "--format", "json", *bus))["seq"]
    events = folder / "events.jsonl"
    events.write_text(isrflow("events", "--to", str(last), *bus))
    assert f'"seq":{taken},' in events.read_text()
    isrflow("replay", str(events), "--out", str(folder / "again.jsonl"))
    decided = [line for line in isrflow("decisions", *bus).splitlines() if json.loads(line)["seq"] <= last]
    assert (folder / "again.jsonl").read_text().splitlines() == decided
    # With a longer session the killed broker is fenced only when it comes back.
    other = json.loads(isrflow("whatif", "--set", "broker.session.timeout.ms=86400000", "--format", "json", *bus))
    assert other["totals"]["elections"]["was"] > 0
    assert not other["is_same"]


def the_page_shows_the_same(led: LedCluster, kafka_url: str) -> None:
    """Check what the live page asks its engine."""
    moved = fenced(kafka_url)
    (page,) = re.findall(r'"page": "([^"]+)"', led.engine.log_file.read_text())

    def asked(path: str) -> Any:
        with urllib.request.urlopen(page + path, timeout=TIMEOUT_S) as answer:
            return json.load(answer)

    partition = asked(f"page/partition?topic={TOPIC}&partition={moved['partition']}")
    assert partition["explanation"], partition["why_not"]
    assert "LEADER_FENCED" in json.dumps(partition["explanation"]["steps"])
    brokers = asked(f"page/past?time_ms={moved['time_ms'] - 1}")["cluster"]["brokers"]
    assert next(broker["leaders"] for broker in brokers if broker["broker"] == 1) > 0
    with urllib.request.urlopen(page + "page/events", timeout=TIMEOUT_S) as pushed:
        data = (json.loads(line.removeprefix(b"data: ")) for line in pushed if line.startswith(b"data: "))
        # Each push begins with a beat.
        assert next(one["role"] for one in data if "role" in one) == "deciding"


def test_a_cluster_works_with_its_bus_on_another_kafka(led: LedCluster, kafka_url: str, tmp_path: Path) -> None:
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

        wait_until(moved, "the other broker to lead")
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

        wait_until(in_sync, "both to be in sync")
    finally:
        bus.close()
    sent |= send(led, "after").acknowledged
    read = read_all(led.kafka.bootstrap, TOPIC, 4)
    assert lost_records(sent, read) == {}
    assert sorted(record.value for record in read) == sorted(sent)
    assert TOPIC in isrflow("describe", "--bus", kafka_url)
    the_past_is_told(kafka_url, tmp_path)
    the_page_shows_the_same(led, kafka_url)
    isrflow("cluster", "down", "--dir", str(led.folder))
    assert [service.name for service in led.services if service.state != "stopped"] == []
