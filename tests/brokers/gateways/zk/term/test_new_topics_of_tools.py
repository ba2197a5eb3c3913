"""A topic that a tool writes into ZooKeeper, and changes or deletes before the engine has decided about it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.gateways.zk import znodes
from bus.image import view_of_image
from state.events import CreateTopic, DeleteTopic
from tests.brokers.gateways.zk.gateways import Gateways, gateways
from tests.support.waiting import wait_until
from tests.support.znode_cluster import ZnodeCluster

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}
CONFIG = f"{znodes.TOPIC_CONFIGS}/t"


@pytest.fixture
def led(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateways]:
    """A gateway that leads brokers 1 and 2."""
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        for number in (1, 2):
            led.tree.put_broker(number)
        led.start(100)
        wait_until(lambda: led.state_of(1) == led.state_of(2) == "active", "the brokers to serve")
        yield led


def put_topic(led: Gateways) -> None:
    led.tree.put(CONFIG, b'{"version":1,"config":{}}')
    led.tree.put("/brokers/topics/t", json.dumps({"version": 2, "partitions": {"0": [1, 2]}}).encode())


def test_a_deletion_waits_for_the_topic_to_be_decided(led: Gateways) -> None:
    with led.tree.lock:
        put_topic(led)
        led.tree.put(f"{znodes.DELETE_TOPICS}/t", b"")
    wait_until(lambda: f"{znodes.DELETE_TOPICS}/t" not in led.tree.znodes, "the deletion to be asked for")
    assert len(led.events(CreateTopic)) == len(led.events(DeleteTopic)) == 1


def test_a_move_waits_for_the_topic_to_be_decided_and_one_of_no_topic_ends(led: Gateways) -> None:
    moves = [{"topic": name, "partition": 0, "replicas": [2, 1]} for name in ("t", "nowhere")]

    def read(path: str) -> None:
        # The gateway has looked for new topics, and now looks for moves.
        if path == znodes.REASSIGN_PARTITIONS and led.tree.before_read is read:
            led.tree.before_read = lambda path: None
            put_topic(led)
            led.tree.put(path, json.dumps({"version": 1, "partitions": moves}).encode())

    led.tree.before_read = read
    wait_until(lambda: led.tree.before_read is not read, "the gateway to look")
    wait_until(lambda: znodes.REASSIGN_PARTITIONS not in led.tree.znodes, "the moves to end")
    [held] = view_of_image(led.bus.image())["partitions"]
    assert held["replicas"] == (2, 1)


@pytest.mark.parametrize("is_there", [True, False])
def test_a_take_over_leaves_a_deletion_of_a_topic_that_it_leaves_to_the_gateway(
    cluster: ZnodeCluster, is_there: bool
) -> None:
    if is_there:
        cluster.put("/brokers/topics/t", {"version": 2, "partitions": {"0": [1, 2]}})
    cluster.put(f"{znodes.DELETE_TOPICS}/t", "")
    cluster.adopt()
    assert cluster.is_there(f"{znodes.DELETE_TOPICS}/t") == is_there


def test_settings_that_change_before_the_topic_is_decided_count(led: Gateways) -> None:
    def read(path: str) -> None:
        # The settings that the engine is asked for have been read, and it has not answered.
        if path == "/brokers/topics/t/partitions" and led.tree.before_read is read:
            led.tree.before_read = lambda path: None
            led.tree.put(CONFIG, b'{"version":1,"config":{"retention.ms":"5"}}')
            led.tree.create(znodes.CONFIG_CHANGE, znodes.config_change_text("t"), sequence=True)

    led.tree.before_read = read
    put_topic(led)
    wait_until(lambda: topics(led), "the topic to be decided")
    wait_until(lambda: topics(led) == {"t": {"retention.ms": "5"}}, "the settings to be decided")


def topics(led: Gateways) -> dict[str, dict[str, str]]:
    return {held["topic"]: held["config"] for held in view_of_image(led.bus.image())["topics"]}
