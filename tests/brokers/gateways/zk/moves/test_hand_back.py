"""A cluster is handed back as it was decided, whatever ZooKeeper shows at first."""

import json

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.moves.hand_back import HandBackError, hand_back
from tests.brokers.gateways.zk.zookeeper import Zookeeper
from tests.support.znode_cluster import CLUSTER_ID, PATIENT, ZnodeCluster

STATE = "/brokers/topics/t/partitions/0/state"


def test_what_a_server_that_lags_behind_shows_late_is_not_written_twice(
    cluster: ZnodeCluster, zookeeper: Zookeeper
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    cluster.ask("gateway_started", gateway=100, incarnation="g", voters=[100, 101])
    cluster.ask("alter_reassignment", topic="t", partition=0, replicas=[2, 1])
    partition_epoch = cluster.decided()["t-0"][3]
    written = zookeeper.znodes[STATE].version
    assert written < partition_epoch

    def show(path: str) -> None:
        # ZooKeeper has all that was written as soon as the place of the controller is taken.
        if path == znodes.CONTROLLER_EPOCH:
            for _ in range(partition_epoch - zookeeper.znodes[STATE].version):
                zookeeper.set(STATE, json.dumps(cluster.get(STATE)).encode())

    zookeeper.before_read = show
    assert hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    # A leader asks for its next ISR from this version.
    assert zookeeper.znodes[STATE].version == partition_epoch


def test_what_cannot_be_read_leaves_all_as_it_is(cluster: ZnodeCluster, zookeeper: Zookeeper) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    cluster.ask("gateway_started", gateway=100, incarnation="g", voters=[100, 101])
    # No gateway runs, and somebody has freed the place of the controller.
    zookeeper.delete(znodes.CONTROLLER)
    zookeeper.set("/brokers/topics/t", b"{")
    before = dict(zookeeper.znodes)
    with pytest.raises(HandBackError, match="/brokers/topics/t"):
        hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    # A broker that looks for the controller can still take the place.
    assert zookeeper.znodes == before


@pytest.mark.parametrize("is_adopted", [True, False])
def test_a_cluster_is_handed_back_from_a_gateway_that_was_killed_before_it_led(
    cluster: ZnodeCluster, zookeeper: Zookeeper, monkeypatch: pytest.MonkeyPatch, is_adopted: bool
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    if not is_adopted:
        zookeeper.create(znodes.ADOPTION)
    controllers: list[int] = []

    def note() -> None:
        if cluster.is_there(znodes.CONTROLLER):
            controllers.append(cluster.get(znodes.CONTROLLER)["brokerid"])

    monkeypatch.setattr(zookeeper, "committed", note)
    gateways = [voter.voter for voter in cluster.identity.voters]
    assert hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus, gateways)
    assert not any(map(cluster.is_there, (znodes.CONTROLLER, znodes.ADOPTION, znodes.BUS, f"{znodes.DELETE_TOPICS}/t")))
    # Killed in between, it would leave a place that the next attempt knows as a gateway's.
    assert set(controllers) == {100}


def test_a_place_that_nobody_has_is_not_taken_if_no_gateway_led(cluster: ZnodeCluster, zookeeper: Zookeeper) -> None:
    cluster.client.delete("/controller")
    before = dict(zookeeper.znodes)
    with pytest.raises(HandBackError, match="no gateway has led brokers by this bus"):
        hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus, [100])
    assert zookeeper.znodes == before
