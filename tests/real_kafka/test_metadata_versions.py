"""Brokers are led at the metadata version of their release, which is chosen when the log begins and can be raised."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import NewTopic
from msgspec import structs

from brokers.launch.kafka.node import KafkaNode
from brokers.launch.kafka.preparing import prepare
from brokers.launch.kafka.tools import FEATURES, ToolError, run_tool
from cli.commands import command
from conf.kafka_versions import KAFKA_VERSION, KAFKA_VERSIONS, OF_RELEASE, ZOOKEEPER_KAFKA_VERSION
from state.features import ELIGIBLE_VERSION
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.cluster_command import on_cluster
from tests.support.real_cluster import POLICY
from tests.support.rules_engine import RulesEngine
from tests.support.up_cluster import UpCluster
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.kraft, pytest.mark.timeout(900)]
QUORUM = "MetadataQuorumCommand"
*BETWEEN, NEWEST = (number for number in KAFKA_VERSIONS if number > KAFKA_VERSION)
# The levels with which a log of Kafka 4.0 begins.
OF_4_0 = {"metadata.version": "4.0-IV3", "group.version": "1", "transaction.version": "2"}
# Those that one of each later release has. The tool knows no name of a level that is newer than the tool.
OF_LATER = {"4.2": "4.2-IV1", "4.3": "UNKNOWN", "4.4": "UNKNOWN"}


def levels_in(release: str) -> dict[str, str]:
    """Return the levels with which a log of a later release begins. Up to 4.2 the bus of these tests is at level 1."""
    eligible = {} if release == "4.2" else {ELIGIBLE_VERSION: "1"}
    return (
        OF_4_0
        | eligible
        | {
            "metadata.version": OF_LATER[release],
            "share.version": "2" if release == "4.4" else "1",
            "streams.version": "1",
        }
    )


@contextmanager
def up(folder: Path, bus_path: Path, *options: str, brokers: int = 3) -> Iterator[UpCluster]:
    """Start brokers and a gateway, and traffic on them whose records are checked at the end."""
    given = ("--brokers", str(brokers), "--gateways", "1", "--heap", "384m", "--bus", str(bus_path), *options)
    code, said = on_cluster(folder, "up", *given)
    assert code == 0, said
    cluster = UpCluster(folder, bus_path)
    safe = {"min.insync.replicas": str(brokers - 1)}
    cluster.create(*(NewTopic(name, PARTITIONS, brokers, config=safe) for name in ("t", "t-whole")))
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
    prepare(ZOOKEEPER_KAFKA_VERSION)
    with up(cluster_folder, tmp_path / "bus.db", "--kafka", ZOOKEEPER_KAFKA_VERSION) as cluster:
        assert levels(cluster) == {"metadata.version": "3.9-IV0"}
        die_and_return(cluster, 2)
        with pytest.raises(ToolError, match=r"metadata\.version"):
            cluster.tool(FEATURES, "upgrade --feature metadata.version=25")
        assert levels(cluster) == {"metadata.version": "3.9-IV0"}


def test_brokers_are_replaced_by_those_of_the_next_release_and_then_the_level_is_raised(
    cluster_folder: Path, tmp_path: Path, next_engine: RulesEngine
) -> None:
    next_engine.start(tmp_path / "bus.db", **POLICY)
    with up(cluster_folder, tmp_path / "bus.db", "--kafka", OF_RELEASE["4.0"].number, brokers=2) as cluster:
        assert levels(cluster) == OF_4_0
        die_and_return(cluster, 1)
        replace(cluster, 1, KAFKA_VERSION)
        with pytest.raises(ToolError, match=r"metadata\.version cannot have level 27: broker 2 supports"):
            cluster.tool(FEATURES, "upgrade --feature metadata.version=27")
        replace(cluster, 2, KAFKA_VERSION)
        with pytest.raises(ToolError, match=f"{ELIGIBLE_VERSION} needs level 2"):
            cluster.tool(FEATURES, "upgrade --release-version 4.1")
        raise_bus(cluster)
        cluster.tool(FEATURES, "upgrade --release-version 4.1")
        raised = OF_4_0 | {"metadata.version": "4.1-IV1", ELIGIBLE_VERSION: "1", "kraft.version": "1"}
        wait_until(lambda: levels(cluster) == raised, "the level to be raised")
        with pytest.raises(ToolError, match=r"metadata\.version"):
            cluster.tool(FEATURES, "downgrade --unsafe --feature metadata.version=25")
        quorum_is_told(cluster)


# The cluster of test_newest_release.py is of the newest one.
@pytest.mark.long
@pytest.mark.parametrize("kafka", BETWEEN)
def test_brokers_of_each_newer_release_are_led(
    kafka: str, cluster_folder: Path, tmp_path: Path, next_engine: RulesEngine
) -> None:
    next_engine.start(tmp_path / "bus.db", **POLICY)
    with up(cluster_folder, tmp_path / "bus.db", "--kafka", kafka, brokers=2) as cluster:
        assert levels(cluster) == levels_in(KAFKA_VERSIONS[kafka].release)
        die_and_return(cluster, 1)


def test_a_running_cluster_is_raised_to_the_newest_release_once_the_bus_is(
    cluster_folder: Path, tmp_path: Path, next_engine: RulesEngine
) -> None:
    next_engine.start(tmp_path / "bus.db", **POLICY)
    options = ("--kafka", NEWEST, "--metadata-version", "4.2")
    with up(cluster_folder, tmp_path / "bus.db", *options, brokers=2) as cluster:
        assert levels(cluster) == levels_in("4.2")
        with pytest.raises(
            ToolError, match=r"metadata\.version cannot have level 33: a gateway supports levels 21 to 29"
        ):
            cluster.tool(FEATURES, "upgrade --feature metadata.version=33")
        raise_bus(cluster)
        newer = ("metadata.version=33", "share.version=2", f"{ELIGIBLE_VERSION}=1")
        cluster.tool(FEATURES, "upgrade" + "".join(f" --feature {one}" for one in newer))
        raised = levels_in("4.4")
        wait_until(lambda: levels(cluster) == raised, "the level to be raised")
        # Restarted brokers read a log with records of both levels.
        die_and_return(cluster, 1)


def raise_bus(cluster: UpCluster) -> None:
    done = CliRunner().invoke(command, ["level", "raise", "--bus", str(cluster.bus_path)])
    assert done.exit_code == 0, done.output


def die_and_return(cluster: UpCluster, broker: int) -> None:
    """Kill a broker, and start it again once the others lead."""
    cluster.broker(broker).kill()
    wait_until(lambda: cluster.states()[broker] == "fenced", "the dead broker to be fenced")
    cluster.restart(broker)
    cluster.wait_for_isr("t", len(cluster.kafka.nodes))


def replace(cluster: UpCluster, broker: int, version: str) -> None:
    """Stop a broker, and start one of another version on its data."""
    stopped = cluster.broker(broker)
    assert stopped.stop()
    spec = structs.replace(stopped.spec, version=version)
    cluster.kafka.nodes[broker] = KafkaNode(spec, stopped.folder, len(cluster.kafka.nodes))
    cluster.restart(broker)
    cluster.wait_for_isr("t", len(cluster.kafka.nodes))


def quorum_is_told(cluster: UpCluster) -> None:
    """Check what ``kafka-metadata-quorum`` tells, through the brokers and by the gateway itself."""
    (gateway,) = cluster.gateways.values()
    voter, controller = gateway.voter.voter, f"{gateway.voter.host}:{gateway.voter.port}"
    by_controller = run_tool(QUORUM, controller, ["describe", "--status"], is_controller=True)
    for told in (cluster.tool(QUORUM, "describe --status"), by_controller):
        assert re.search(rf"LeaderId:\s+{voter}\n", told), told
        assert observers(told) == set(cluster.kafka.nodes)
    heads, *rows = [line.split("\t") for line in cluster.tool(QUORUM, "describe --replication").splitlines()]
    told = [dict(zip((head.strip() for head in heads), (one.strip() for one in row), strict=True)) for row in rows]
    assert {int(row["NodeId"]): row["Status"] for row in told} == {
        voter: "Leader",
        **dict.fromkeys(cluster.kafka.nodes, "Observer"),
    }
    end = {row["Status"]: int(row["LogEndOffset"]) for row in told}["Leader"]
    assert all(0 <= end - int(row["LogEndOffset"]) == int(row["Lag"]) for row in told), told
