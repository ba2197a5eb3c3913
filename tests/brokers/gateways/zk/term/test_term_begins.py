"""What is in ZooKeeper when a term begins, and what happens there meanwhile."""

import threading
from itertools import count
from pathlib import Path

import pytest
from msgspec import json

from brokers.gateways.zk import lead_watch, znodes
from brokers.gateways.zk.moves.adoption import AdoptionError
from brokers.gateways.zk.moves.hand_back import hand_back
from bus.clock import now_ms
from bus.image import view_of_image
from state.events import AlterConfig, CreateTopic
from tests.brokers.gateways.zk.gateways import gateways
from tests.brokers.gateways.zk.zookeeper import Zookeeper
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.znode_cluster import CLUSTER_ID, IDS, PATIENT, ZnodeCluster

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}


def test_settings_that_a_broker_writes_while_a_term_begins_are_not_lost(
    cluster: ZnodeCluster, zookeeper: Zookeeper
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    paths: list[str] = []

    def write_settings(path: str) -> None:
        # The settings of the topic were just read, because its states come next.
        if path == "/brokers/topics/t/partitions/0/state" and not paths:
            paths.append(path)
            zookeeper.set("/config/topics/t", b'{"version":1,"config":{"retention.ms":"5"}}')
            note = b'{"version":2,"entity_path":"topics/t"}'
            zookeeper.create("/config/changes/config_change_", note, sequence=True)

    async def begin() -> None:
        zookeeper.before_read = write_settings

    def are_decided() -> bool:
        [topic] = view_of_image(cluster.bus.image())["topics"]
        return topic["config"] == {"retention.ms": "5"}

    cluster.lead(are_decided, begin)


def test_a_topic_whose_controller_made_no_state_is_taken_over(cluster: ZnodeCluster) -> None:
    """The controller was cut off after it had made ``partitions/``, below which one partition has a directory."""
    cluster.put("/brokers/topics/t", {"version": 3, "topic_id": IDS["t"], "partitions": {"0": [1, 2], "1": [2, 1]}})
    cluster.put("/brokers/topics/t/partitions/0", {})
    cluster.adopt()
    [topic] = view_of_image(cluster.bus.image())["topics"]
    assert topic["topic_id"] == IDS["t"]

    async def begin() -> None:
        pass

    states = [f"/brokers/topics/t/partitions/{number}/state" for number in (0, 1)]
    cluster.lead(lambda: all(map(cluster.is_there, states)), begin)
    assert [cluster.get(path)["leader"] for path in states] == [1, 2]


def test_what_cannot_be_read_ends_no_term(cluster: ZnodeCluster, zookeeper: Zookeeper) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    # Nobody led it, because it cannot be read.
    cluster.client.create("/brokers/topics/u", b"")
    cluster.client.create("/config/brokers/<default>", b"{", makepath=True)
    altered = AlterConfig(time_ms=now_ms(), entity="topic", name="t", config={"retention.ms": "5"})
    asked: list[int] = []

    def has_new_settings() -> bool:
        if cluster.get("/controller_epoch") > 7 and not asked:
            zookeeper.create("/config/changes/config_change_", b"", sequence=True)
            asked.append(cluster.bus.publish([json.encode(altered)]))
        return cluster.get("/config/topics/t")["config"] == {"retention.ms": "5"}

    async def begin() -> None:
        pass

    cluster.lead(has_new_settings, begin)
    assert cluster.get("/controller_epoch") == 8
    assert hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    assert cluster.client.get("/brokers/topics/u")[0] == b""


def test_a_refused_topic_with_a_foreign_znode_below_it_ends_no_term(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    # No broker has this id, so the engine refuses the topic.
    cluster.put("/brokers/topics/u", {"version": 3, "partitions": {"0": [9]}, "topic_id": IDS["u"]})
    cluster.put("/brokers/topics/u/foreign", {})
    cluster.put("/config/topics/u", {"version": 1, "config": {}})
    cluster.put("/config/topics/u/foreign", {})

    async def begin() -> None:
        pass

    cluster.lead(lambda: not any(map(cluster.is_there, ("/brokers/topics/u", "/config/topics/u"))), begin)
    assert cluster.get("/controller_epoch") == 8


def test_what_cannot_be_read_of_a_led_topic_ends_no_term(cluster: ZnodeCluster, zookeeper: Zookeeper) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    foreign = [f"/brokers/topics/t/partitions/{name}" for name in ("a", "00", "01")]
    for path in foreign:
        cluster.client.create(path, b"")
    cluster.client.set("/config/topics/t", b"{")
    put_back: list[str] = []

    def is_put_back_twice() -> bool:
        if cluster.client.get("/config/topics/t")[0] == b"{":
            return False
        if not put_back:
            put_back.append(cluster.get("/config/topics/t")["config"]["retention.ms"])
            cluster.client.set("/config/topics/t", b"")
            note = b'{"version":2,"entity_path":"topics/t"}'
            zookeeper.create("/config/changes/config_change_", note, sequence=True)
            return False
        return cluster.client.get("/config/topics/t")[0] != b""

    async def begin() -> None:
        pass

    cluster.lead(is_put_back_twice, begin)
    assert [*put_back, cluster.get("/config/topics/t")["config"]["retention.ms"]] == ["1000", "1000"]
    assert cluster.get("/controller_epoch") == 8
    assert all(map(cluster.is_there, foreign))


def test_settings_that_cannot_be_read_are_not_taken_over(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.client.set("/config/topics/t", b"{")
    with pytest.raises(AdoptionError, match="/config/topics/t: "):
        cluster.adopt()
    assert not cluster.is_there("/controller")


def test_a_cluster_that_migrates_to_kraft_is_not_taken_over(cluster: ZnodeCluster) -> None:
    cluster.client.delete("/controller")
    cluster.put("/controller", {"version": 2, "brokerid": 3_000, "timestamp": "1", "kraftControllerEpoch": 4})
    with pytest.raises(AdoptionError, match="controller 3000 migrates this cluster to KRaft"):
        cluster.adopt()
    assert (cluster.get("/controller")["brokerid"], cluster.get("/controller_epoch")) == (3_000, 6)


def test_a_gateway_that_waited_for_zookeeper_leaves_the_place_to_the_one_that_is_named_by_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was named while ZooKeeper was away. The other gateway led, and wrote a topic that the first one had missed."""
    waits, is_back, connections = threading.Event(), threading.Event(), count()

    def start(timeout: float) -> None:
        if next(connections) == 0:
            waits.set()
            is_back.wait(TIMEOUT_S)

    monkeypatch.setattr(lead_watch, "FAILING_LIMIT_S", 0.1)
    with gateways(tmp_path, monkeypatch, 2, {"broker_session_timeout_ms": 600_000}, **QUICK) as led:
        monkeypatch.setattr(led.tree, "start", start)
        led.tree.put_broker(1)
        led.start(100)
        assert waits.wait(TIMEOUT_S)
        led.start(101)
        wait_until(lambda: led.leads(101), "the other gateway to lead")
        wait_until(lambda: led.state_of(1) == "active", "the broker")
        led.bus.publish([json.encode(CreateTopic(time_ms=now_ms(), topic="t", assignment={"0": (1,)}))])
        state = "/brokers/topics/t/partitions/0/state"
        wait_until(lambda: state in led.tree.znodes, "what the other gateway writes")
        written = led.tree.znodes[state].czxid
        is_back.set()
        wait_until(lambda: led.serves(100), "the first gateway to know who leads")
        assert led.tree.znodes[state].czxid == written
        assert led.leads(101)
        assert [gateway for gateway, _ in led.tree.epochs] == [101]


def test_what_the_former_gateway_wrote_before_the_place_was_taken_stays(
    cluster: ZnodeCluster, zookeeper: Zookeeper
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    made: list[int] = []

    def make_topic(path: str) -> None:
        if path == znodes.CONTROLLER_EPOCH and not made:
            made.append(0)
            cluster.ask("create_topic", topic="u", assignment={"0": [1, 2]})
            [topic_id] = [
                one["topic_id"] for one in view_of_image(cluster.bus.image())["topics"] if one["topic"] == "u"
            ]
            cluster.put_topic("u", {0: [1, 2]}, version=0, topic_id=topic_id)
            made[0] = zookeeper.znodes["/brokers/topics/u"].czxid

    altered = AlterConfig(time_ms=now_ms(), entity="topic", name="t", config={"retention.ms": "5"})
    asked: list[int] = []

    def has_new_settings() -> bool:
        if made and made[0] and not asked:
            asked.append(cluster.bus.publish([json.encode(altered)]))
        return cluster.get("/config/topics/t")["config"] == {"retention.ms": "5"}

    async def begin() -> None:
        zookeeper.before_read = make_topic

    cluster.lead(has_new_settings, begin)
    assert cluster.get("/controller_epoch") == 8
    assert zookeeper.znodes["/brokers/topics/u"].czxid == made[0]
