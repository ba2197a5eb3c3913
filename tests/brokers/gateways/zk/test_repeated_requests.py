"""What brokers are answered when an answer was lost, or ZooKeeper does not hold what was decided."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kazoo.exceptions import ConnectionLoss

from brokers.gateways.zk import znodes
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from tests.brokers.gateways.zk.gateways import Gateways, gateways
from tests.brokers.gateways.zk.zookeeper import Transaction
from tests.support.controller_client import ControllerClient
from tests.support.waiting import wait_until

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}
BROKERS = (1, 2, 3)


class Cluster:
    """Three brokers, and a topic of one partition that the first one leads."""

    def __init__(self, led: Gateways) -> None:
        self.led = led
        self._epochs = {number: led.tree.put_broker(number) for number in BROKERS}
        led.start(100)
        wait_until(lambda: all(led.state_of(number) == "active" for number in BROKERS), "the brokers to serve")
        self.client = ControllerClient(led.identity(100).here.port)
        assignment = [{"PartitionIndex": 0, "BrokerIds": list(BROKERS)}]
        asked = {"Name": "t", "NumPartitions": -1, "ReplicationFactor": -1, "Assignments": assignment}
        [created] = self.client.ask("CreateTopics", Topics=[asked], timeoutMs=9_000)["Topics"]
        assert created["ErrorCode"] == ErrorCode.NONE
        self._topic_id = created["TopicId"]

    def want(self, *isr: int, partition_epoch: int = 0) -> Values:
        """Ask for an ISR as the leader, and return the whole response."""
        members = [{"BrokerId": one, "BrokerEpoch": self._epochs[one]} for one in isr]
        row = {"PartitionIndex": 0, "LeaderEpoch": 0, "PartitionEpoch": partition_epoch, "NewIsrWithEpochs": members}
        topics = [{"TopicId": self._topic_id, "Partitions": [row]}]
        return self.client.ask("AlterPartition", 3, BrokerId=1, BrokerEpoch=self._epochs[1], Topics=topics)

    def isr(self) -> list[int]:
        """Return the ISR that ZooKeeper holds."""
        held = self.led.tree.znodes["/brokers/topics/t/partitions/0/state"]
        return list(json.loads(held.data)["isr"])

    def producer_ids(self) -> Values:
        """Ask for a block of producer ids."""
        return self.client.ask("AllocateProducerIds", BrokerId=1, BrokerEpoch=self._epochs[1])


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        yield Cluster(led)


def row_of(response: Values) -> dict[str, Any]:
    assert response["ErrorCode"] == ErrorCode.NONE
    [topic] = response["Topics"]
    [row] = topic["Partitions"]
    return dict(row)


def test_a_leader_that_lost_the_answer_hears_that_its_isr_is_committed(cluster: Cluster) -> None:
    first, again = row_of(cluster.want(1, 2)), row_of(cluster.want(1, 2))
    assert first == again
    assert (first["ErrorCode"], first["Isr"], first["PartitionEpoch"]) == (ErrorCode.NONE, [1, 2], 1)
    # From the epoch that it was told the leader goes on.
    assert row_of(cluster.want(1, 2, 3, partition_epoch=1))["PartitionEpoch"] == 2


def test_another_isr_from_a_former_partition_epoch_is_refused(cluster: Cluster) -> None:
    assert row_of(cluster.want(1, 2))["ErrorCode"] == ErrorCode.NONE
    assert row_of(cluster.want(1, 3))["ErrorCode"] == ErrorCode.INVALID_UPDATE_VERSION


class CutOff(Transaction):
    """A transaction that does not reach ZooKeeper."""

    def commit(self) -> list[object]:
        raise ConnectionLoss


def test_an_isr_that_zookeeper_does_not_hold_is_not_answered_as_committed(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(cluster.led.tree, "transaction", lambda: CutOff(cluster.led.tree))
        assert cluster.want(1, 2)["ErrorCode"] == ErrorCode.NOT_CONTROLLER
    assert cluster.isr() == [1, 2, 3]
    wait_until(lambda: cluster.led.leads(100), "the next term")
    assert row_of(cluster.want(1, 2))["PartitionEpoch"] == 1
    assert cluster.isr() == [1, 2]


def test_producer_ids_are_handed_out_once_zookeeper_says_that_they_are_taken(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = cluster.producer_ids()
    assert (first["ErrorCode"], first["ProducerIdStart"]) == (ErrorCode.NONE, 0)
    assert znodes.next_producer_id_of(cluster.led.tree.znodes[znodes.PRODUCER_IDS].data) == 1_000
    with monkeypatch.context() as patch:
        patch.setattr(cluster.led.tree, "transaction", lambda: CutOff(cluster.led.tree))
        assert cluster.producer_ids()["ErrorCode"] == ErrorCode.NOT_CONTROLLER
    assert cluster.producer_ids()["ProducerIdStart"] == 2_000
    assert znodes.next_producer_id_of(cluster.led.tree.znodes[znodes.PRODUCER_IDS].data) == 3_000
