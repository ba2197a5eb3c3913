"""A stock cluster that is read by a shadow knows nothing of it: not its quorum, not its metrics, not its log."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from brokers.launch.kafka.node import JVM_FLAGS
from brokers.launch.ports import free_ports
from brokers.shadow.source import Batch
from brokers.shadow.static_settings import static_settings_of
from brokers.wire.security.connecting import Client
from tests.real_kafka.kafkas_classes import run_java
from tests.support.controller_client import ControllerClient
from tests.support.shadow_reader import ShadowReader
from tests.support.stock_quorum import StockQuorum
from tests.support.waiting import wait_until

pytestmark = pytest.mark.kraft
METRICS = Path(__file__).with_name("QuorumMetrics.java")
CONTROLLER, BROKER = 101, 1
READ_MS = 10_000
# How long the controller's own events take depends on the machine. Their counts stay.
DURATION = re.compile(r"TimeMs \w*(Percentile|Mean|Max|Min|StdDev)$")


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[StockQuorum, int]]:
    """The cluster, and the port of its controller's metrics."""
    stock = StockQuorum(tmp_path_factory.mktemp("stock") / "kafka", brokers=1)
    (port,) = free_ports(1)
    node = stock.node(CONTROLLER)
    remote = {"port": port, "rmi.port": port, "host": "127.0.0.1", "authenticate": "false", "ssl": "false"}
    flags = [f"-Dcom.sun.management.jmxremote.{name}={value}" for name, value in remote.items()]
    flags.append("-Djava.rmi.server.hostname=127.0.0.1")
    node.spec = msgspec.structs.replace(node.spec, jvm_flags=(*JVM_FLAGS, *flags))
    with stock:
        yield stock, port


def metrics(port: int) -> dict[str, str]:
    told = dict(line.split("\t") for line in run_java(METRICS, [port]).splitlines())
    return {name: value for name, value in told.items() if not DURATION.search(name)}


def quorum(stock: StockQuorum) -> tuple[set[int], set[int]]:
    """Return the voters and the observers, as the controller tells them."""
    client = ControllerClient(stock.voters[0].port)
    try:
        partition = {"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}
        [topic] = client.ask("DescribeQuorum", Topics=[partition])["Topics"]
    finally:
        client.close()
    [told] = topic["Partitions"]
    return {one["ReplicaId"] for one in told["CurrentVoters"]}, {one["ReplicaId"] for one in told["Observers"]}


def test_a_cluster_does_not_notice_its_shadow(stock: tuple[StockQuorum, int]) -> None:
    cluster, port = stock
    log = cluster.node(CONTROLLER).log_file
    wait_until(lambda: quorum(cluster) == ({CONTROLLER}, {BROKER}), "the broker to be an observer")
    first, before, begin = metrics(port), metrics(port), log.stat().st_size
    # The others move in a cluster without a shadow too.
    still = {name for name in before if first.get(name) == before[name]}
    assert "kafka.server:type=raft-metrics number-of-observers" in still and len(still) > 20
    with ShadowReader(cluster.endpoints) as reader:
        reader.wait_for_offset(5)
        settings = asyncio.run(static_settings_of(cluster.endpoints[0], Client(), CONTROLLER))
        assert settings == {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
        time_ms = reader.batches[-1].time_ms + READ_MS
        reader.wait_for(lambda item: isinstance(item, Batch) and item.time_ms > time_ms, "ten more seconds")
        during = metrics(port)
        assert quorum(cluster) == ({CONTROLLER}, {BROKER})
    assert during.keys() == before.keys()
    assert {name: during[name] for name in still} == {name: before[name] for name in still}
    said = log.read_bytes()[begin:].decode().splitlines()
    assert [line for line in said if " INFO " not in line or "isrflow" in line] == []


def test_a_fetch_with_an_id_is_noticed(stock: tuple[StockQuorum, int]) -> None:
    """The test above could fail: the same fetch with an id makes an observer."""
    cluster, _ = stock
    client = ControllerClient(cluster.voters[0].port)
    try:
        epoch = client.fetch(0, 0)["CurrentLeader"]["LeaderEpoch"]
        assert client.fetch(1, epoch, epoch, replica=4711)["ErrorCode"] == 0
    finally:
        client.close()
    assert quorum(cluster) == ({CONTROLLER}, {BROKER, 4711})
