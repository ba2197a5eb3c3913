"""A cluster is handed back as it was decided, whatever ZooKeeper shows at first."""

import json

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.hand_back import HandBackError, hand_back
from tests.brokers.zk.zookeeper import Zookeeper
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
