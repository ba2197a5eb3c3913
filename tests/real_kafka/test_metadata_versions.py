"""Brokers are led at the metadata version of their release, which is chosen when the log begins and can be raised."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from brokers.launch.kafka.node import KAFKA_3
from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.tools import FEATURES, ToolError, run_tool
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.cluster_command import on_cluster
from tests.support.real_cluster import POLICY
from tests.support.rules_engine import RulesEngine
from tests.support.up_cluster import UpCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]
QUORUM = "MetadataQuorumCommand"
SAFE = {"min.insync.replicas": "2"}


@contextmanager
def up(folder: Path, bus_path: Path, *options: str) -> Iterator[UpCluster]:
    """Start three brokers and a gateway, and traffic on them whose records are checked at the end."""
    given = ("--brokers", "3", "--gateways", "1", "--heap", "384m", "--bus", str(bus_path), *options)
    code, said = on_cluster(folder, "up", *given)
    assert code == 0, said
    cluster = UpCluster(folder, bus_path)
    cluster.create(*(NewTopic(name, PARTITIONS, 3, config=SAFE) for name in ("t", "t-whole")))
    traffic = Traffic(cluster.bootstrap, "t")
    traffic.goes_on()
    yield cluster
    traffic.goes_on()
    traffic.end()
    cluster.agree("t")
    cluster.bus.close()


def observers(told: str) -> set[int]:
    """Return the brokers that follow the log, as ``kafka-metadata-quorum`` tells them."""
    found = re.search(r"CurrentObservers:\s+(\[.*\])", told)
    return {one["id"] for one in json.loads(found[1])} if found else set()


def levels(cluster: UpCluster) -> dict[str, str]:
    """Return the levels in force, as Kafka's tool names them."""
    found = re.findall(r"Feature: (\S+)\s.*FinalizedVersionLevel: (\S+)", cluster.tool(FEATURES, "describe"))
    return {feature: level for feature, level in found if level != "0"}


@pytest.mark.spark
def test_brokers_of_an_older_release_are_led_in_kraft_mode(cluster_folder: Path, tmp_path: Path) -> None:
    """The engine of the cluster itself takes the choice, and the gateway starts after it."""
    prepare(KAFKA_3)
    with up(cluster_folder, tmp_path / "bus.db", "--kafka", "3.9.1") as cluster:
        assert levels(cluster) == {"metadata.version": "3.9-IV0"}
        cluster.broker(2).kill()
        wait_until(lambda: cluster.states()[2] == "fenced", "the dead broker to be fenced")
        cluster.restart(2)
        cluster.wait_for_isr("t", 3)
        with pytest.raises(ToolError, match=r"metadata\.version"):
            cluster.tool(FEATURES, "upgrade --feature metadata.version=25")
        assert levels(cluster) == {"metadata.version": "3.9-IV0"}


def test_the_metadata_version_is_raised_under_load_and_never_lowered(
    cluster_folder: Path, tmp_path: Path, next_engine: RulesEngine
) -> None:
    next_engine.start(tmp_path / "bus.db", **POLICY)
    with up(cluster_folder, tmp_path / "bus.db", "--metadata-version", "4.0") as cluster:
        usual = {"group.version": "1", "transaction.version": "2"}
        assert levels(cluster) == usual | {"metadata.version": "4.0-IV3"}
        cluster.tool(FEATURES, "upgrade --feature metadata.version=27")
        wait_until(lambda: levels(cluster) == usual | {"metadata.version": "4.1-IV1"}, "the level to be raised")
        with pytest.raises(ToolError, match=r"metadata\.version"):
            cluster.tool(FEATURES, "downgrade --unsafe --feature metadata.version=25")
        (gateway,) = cluster.gateways.values()
        voter, controller = gateway.voter.voter, f"{gateway.voter.host}:{gateway.voter.port}"
        by_controller = run_tool(QUORUM, controller, ["describe", "--status"], is_controller=True)
        for told in (cluster.tool(QUORUM, "describe --status"), by_controller):
            assert re.search(rf"LeaderId:\s+{voter}\n", told), told
            assert observers(told) == {1, 2, 3}
        cluster.broker(1).kill()
        wait_until(lambda: cluster.states()[1] == "fenced", "the dead broker to be fenced")
        cluster.restart(1)
        cluster.wait_for_isr("t", 3)
