"""Real brokers with two log directories each: Kafka's tools see and move replicas in them, and one of them fails.

The broker then starts with an empty directory in its place, and later with one that was repaired.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import ElectionType, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bus.image import read_image
from cli.commands import command
from tests.support.clients import ConfluentSender, lost_records, read_all
from tests.support.real_cluster import POLICY, RealCluster, led_by_rules
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft

TOPIC = "placed"
PARTITIONS = 4
LEADER, FOLLOWER = 2, 1


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Two brokers with two log directories each. They write checkpoints often, so they soon see that a disk fails."""
    often = {"replica.high.watermark.checkpoint.interval.ms": "500"}
    cluster = RealCluster(tmp_path_factory.mktemp("real"), brokers=2, log_dirs=2, **often)
    # No broker dies here, so a slow machine must not end a session.
    with led_by_rules(cluster, **(POLICY | {"broker_session_timeout_ms": 60_000})):
        yield cluster


def directory_id(folder: Path) -> str:
    """Return the id that a broker gave a log directory."""
    found = re.search(r"^directory\.id=(\S+)$", (folder / "meta.properties").read_text(), re.MULTILINE)
    assert found is not None
    return found[1]


def decided(cluster: RealCluster, broker: int) -> dict[int, str | None]:
    """Return in which directory the engine has the broker's replica of each partition."""
    return {number: held.get("directories", {}).get(str(broker)) for number, held in cluster.partitions(TOPIC).items()}


def described(cluster: RealCluster, broker: int, ids: dict[Path, str]) -> dict[int, str]:
    """Return the same as kafka-log-dirs shows it."""
    output = cluster.tool("LogDirsCommand", f"--describe --broker-list {broker} --topic-list {TOPIC}")
    [told] = json.loads(output[output.index("{") :])["brokers"]
    return {
        int(held["partition"].rpartition("-")[2]): ids[Path(one["logDir"])]
        for one in told["logDirs"]
        for held in one["partitions"]
    }


def move(cluster: RealCluster, number: int, folder: Path, file: Path) -> None:
    """Move the leader's replica of a partition into another of its directories, with kafka-reassign-partitions."""
    plan = {"topic": TOPIC, "partition": number, "replicas": [LEADER, FOLLOWER], "log_dirs": [str(folder), "any"]}
    file.write_text(json.dumps({"version": 1, "partitions": [plan]}))
    ours = CliRunner().invoke(
        command, ["reassign", "execute", "--reassignment-json-file", str(file), "--bus", str(cluster.bus_path)]
    )
    # The error names the tool that does it.
    assert (ours.exit_code, "kafka-reassign-partitions --bootstrap-server" in ours.output) == (2, True)
    cluster.tool("reassign.ReassignPartitionsCommand", f"--execute --reassignment-json-file {file}")


class Traffic:
    """Records to every partition, each with a value of its own, for as long as a wait lasts."""

    def __init__(self, bootstrap: str) -> None:
        self.sender = ConfluentSender(bootstrap)
        self.sent = 0

    def until(self, condition: Callable[[], bool], what: str) -> None:
        def send_and_check() -> bool:
            for partition in range(PARTITIONS):
                self.sender.send(TOPIC, partition, b"%d" % self.sent)
                self.sent += 1
            return condition()

        wait_until(send_and_check, f"{what}, while records are sent")

    def until_acknowledged(self, more: int) -> None:
        enough = len(self.sender.acknowledged) + more
        self.until(lambda: len(self.sender.acknowledged) >= enough, f"{more} more records to be acknowledged")


def fails(cluster: RealCluster, traffic: Traffic, aside: Path) -> None:
    """Let the disk of the leader's second directory fail. Wait until the follower leads what was in it."""
    folder = cluster.broker(LEADER).data[1]
    in_it = {number for number, where in decided(cluster, LEADER).items() if where == directory_id(folder)}
    # In its place is a file, as in Kafka's own tests.
    folder.rename(aside)
    folder.write_bytes(b"")
    wanted = {number: FOLLOWER if number in in_it else LEADER for number in range(PARTITIONS)}
    traffic.until(
        lambda: {number: held["leader"] for number, held in cluster.partitions(TOPIC).items()} == wanted,
        "only the replicas in the failed directory to be replaced",
    )
    assert cluster.states() == {LEADER: "active", FOLLOWER: "active"}
    traffic.until_acknowledged(50)


def returns(cluster: RealCluster, traffic: Traffic, aside: Path | None) -> None:
    """Start the leader again with its repaired directory, or with an empty one if there is none. It leads all then."""
    node = cluster.broker(LEADER)
    assert node.stop()
    node.data[1].unlink()
    if aside is None:
        node.data[1].mkdir()
        node.format(cluster.cluster_id)
    else:
        aside.rename(node.data[1])
    cluster.restart(LEADER)
    ids = {directory_id(folder) for folder in node.data}
    traffic.until(
        lambda: (
            all(len(held["isr"]) == 2 for held in cluster.partitions(TOPIC).values())
            and set(decided(cluster, LEADER).values()) <= ids
        ),
        "all replicas to be back",
    )
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    everything = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    admin.elect_leaders(ElectionType.PREFERRED, everything).result(TIMEOUT_S)
    led = dict.fromkeys(range(PARTITIONS), LEADER)
    traffic.until(
        lambda: {number: held["leader"] for number, held in cluster.partitions(TOPIC).items()} == led,
        "the broker to lead again",
    )
    assert described(cluster, LEADER, {folder: directory_id(folder) for folder in node.data}) == decided(
        cluster, LEADER
    )


def test_a_directory_fails_and_its_replicas_return(cluster: RealCluster, tmp_path: Path) -> None:
    folders = cluster.broker(LEADER).data
    ids = {folder: directory_id(folder) for folder in folders}
    kept, lost = (ids[folder] for folder in folders)
    cluster.create(NewTopic(TOPIC, PARTITIONS, replica_assignment=[[LEADER, FOLLOWER]] * PARTITIONS))
    wait_until(lambda: set(decided(cluster, LEADER).values()) == {kept, lost}, "the broker to say where replicas are")
    cluster.wait_for_isr(TOPIC, 2)
    assert described(cluster, LEADER, ids) == decided(cluster, LEADER)

    moved = next(number for number, where in decided(cluster, LEADER).items() if where == kept)
    move(cluster, moved, folders[1], tmp_path / "plan.json")
    wait_until(lambda: decided(cluster, LEADER)[moved] == lost, "the replica to have moved")
    in_lost = {number for number, where in decided(cluster, LEADER).items() if where == lost}
    assert moved in in_lost
    assert len(in_lost) < PARTITIONS

    traffic = Traffic(cluster.bootstrap)
    traffic.until_acknowledged(50)
    fails(cluster, traffic, folders[1].with_name("failed"))
    returns(cluster, traffic, None)
    assert directory_id(folders[1]) != lost
    fails(cluster, traffic, folders[1].with_name("failed-again"))
    returns(cluster, traffic, folders[1].with_name("failed-again"))
    traffic.sender.finish(TIMEOUT_S)
    assert traffic.sender.failed == []
    cluster.agree(TOPIC)

    # Every record is on the broker whose directory failed twice: it alone is asked.
    assert cluster.broker(FOLLOWER).stop()
    cluster.wait_for_the_end_of(FOLLOWER)
    read = read_all(cluster.addresses[0], TOPIC, PARTITIONS)
    assert lost_records(traffic.sender.acknowledged, read) == {}
    assert len(read) == traffic.sent


def test_a_broker_that_lost_one_of_three_directories_makes_new_logs(tmp_path: Path) -> None:
    often = {"replica.high.watermark.checkpoint.interval.ms": "500"}
    cluster = RealCluster(tmp_path, brokers=1, log_dirs=3, **often)
    with led_by_rules(cluster, **(POLICY | {"broker_session_timeout_ms": 60_000})):
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        folder, sender = cluster.broker(1).data[1], ConfluentSender(cluster.bootstrap)
        folder.rename(folder.with_name("failed"))
        folder.write_bytes(b"")

        def has_failed() -> bool:
            return len(read_image(cluster.bus.image()).cluster.brokers[1].log_dirs) == 2

        wait_until(has_failed, "the broker to notice the failure")
        admin.create_topics([NewTopic("after", PARTITIONS, 1)])["after"].result(TIMEOUT_S)
        for partition in range(PARTITIONS):
            sender.send("after", partition, b"%d" % partition)
        sender.finish(TIMEOUT_S)
        assert (len(sender.acknowledged), sender.failed) == (PARTITIONS, [])
