"""Trimmed and lost logs: a returning broker starts from a snapshot, a gateway takes another's log."""

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from brokers.gateways.kraft.log import snapshots
from brokers.gateways.kraft.rebuilding import peer
from brokers.wire.batch_header import batches_in
from brokers.wire.metadata.topic import METADATA_DIRECTORY
from bus.image import read_image
from tests.support.broker_copies import log_of
from tests.support.clients import ConfluentSender, read_all
from tests.support.controller_client import ControllerClient
from tests.support.real_cluster import RealCluster, led_by_rules
from tests.support.trimming import trim
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kraft
TOPICS, AT_A_TIME = 80, 8
RECORDS = 100


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    """Two brokers behind two gateways; all of them take a snapshot every few kilobytes."""
    every = {"metadata.log.max.record.bytes.between.snapshots": "4000"}
    cluster = RealCluster(tmp_path_factory.mktemp("real"), brokers=2, gateways=2, gateway_settings=every, **every)
    with led_by_rules(cluster, auto_leader_rebalance_enable=False):
        yield cluster


def quorum_end(cluster: RealCluster) -> int:
    quorum = read_image(cluster.bus.image()).cluster.quorum
    client = ControllerClient(next(voter.port for voter in cluster.voters if voter.voter == quorum.voter))
    response = client.fetch(0, quorum.quorum_epoch)
    client.close()
    return int(response["HighWatermark"])


def begins(folder: Path) -> int:
    """Return the offset at which the log in a folder begins."""
    return min(int(path.stem) for path in folder.glob("*.log"))


def log(cluster: RealCluster, gateway: int) -> Path:
    return cluster.gateways[gateway].log_directory


def batches(directory: Path) -> dict[int, bytes]:
    """Read a gateway's or a broker's batches of the metadata log, by offset."""
    data = log_of(directory)
    return {batch.base_offset: data[at : at + batch.size] for at, batch in batches_in(data)}


def end_of(directory: Path) -> int:
    """Return the offset after all that a log and its snapshots hold. A log just trimmed may have no batch."""
    ends = [batch.next_offset for _, batch in batches_in(log_of(directory))]
    return max(ends + [snapshot.end_offset for snapshot in snapshots.held_in(directory)])


def forget(cluster: RealCluster) -> None:
    """Trim the bus to almost nothing."""
    cluster.bus.passed(cluster.bus.decided_seq())
    trim(cluster.bus, 1)


def lose(cluster: RealCluster, *gateways: int) -> None:
    """Kill gateways, and delete their disks."""
    for gateway in gateways:
        cluster.gateways[gateway].kill()
        shutil.rmtree(log(cluster, gateway))
    forget(cluster)


def start(cluster: RealCluster, gateway: int) -> None:
    cluster.gateways[gateway].start()
    cluster.gateways[gateway].wait_until_started()


def send(cluster: RealCluster) -> None:
    sender = ConfluentSender(cluster.bootstrap)
    for number in range(RECORDS):
        sender.send("kept", number % 2, b"%d" % number)
    sender.finish(TIMEOUT_S)
    assert sender.failed == []


def same(cluster: RealCluster, seen: dict[int, bytes]) -> None:
    """Create one more topic, and compare the logs of gateways and brokers with all batches ``seen`` so far.

    Each of them trims the log behind its snapshots at its own time, so the overlap may be small.
    """
    name = f"last-{quorum_end(cluster)}"
    cluster.create(NewTopic(name, 1, 2))
    everywhere = [log(cluster, gateway) for gateway in (100, 101)] + [metadata(cluster, broker) for broker in (1, 2)]
    for directory in everywhere:
        wait_until(lambda where=directory: name.encode() in log_of(where), f"{name} in {directory}")
    for directory in everywhere:
        for offset, data in batches(directory).items():
            assert seen.setdefault(offset, data) == data, f"offset {offset} in {directory}"


def snapshots_of(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.checkpoint")]


def given_away(cluster: RealCluster, gateway: int) -> list[str]:
    """Return the snapshots that a gateway gives to another: those that were finished before its last write."""
    with TemporaryDirectory() as into:
        cluster.create(NewTopic(Path(into).name, 1, 2))
        [voter] = [one for one in cluster.voters if one.voter == gateway]
        # A file may be trimmed away before it is copied.
        with suppress(peer.PeerError):
            asyncio.run(peer.copy(voter, cluster.cluster_id, Path(into)))
        return snapshots_of(Path(into))


def metadata(cluster: RealCluster, broker: int) -> Path:
    return cluster.broker(broker).data[0] / METADATA_DIRECTORY


def test_gateways_whose_disks_are_lost_take_the_log_from_each_other_and_from_brokers(cluster: RealCluster) -> None:
    cluster.create(NewTopic("kept", 2, 2), *(NewTopic(f"before{number}", 3, 2) for number in range(10)))
    cluster.wait_for_isr("kept", 2)
    send(cluster)
    seen: dict[int, bytes] = {}
    same(cluster, seen)
    # First the leader's, so the other gateway leads.
    oldest = wait_until(lambda: min(given_away(cluster, 101), default=None), "the other to have a snapshot")
    same(cluster, seen)
    lose(cluster, 100)
    start(cluster, 100)
    assert max(snapshots_of(log(cluster, 100))) >= oldest, "a snapshot came too"
    same(cluster, seen)
    # Then both. Now only the brokers have the log; they kept reading and writing all the time.
    read = [end_of(metadata(cluster, broker)) for broker in (1, 2)]
    kept = batches(metadata(cluster, 1))
    lose(cluster, 100, 101)
    start(cluster, 100)
    found = batches(log(cluster, 100))
    assert all(found[offset] == data for offset, data in kept.items() if offset >= begins(log(cluster, 100)))
    assert end_of(log(cluster, 100)) >= max(read)
    start(cluster, 101)
    same(cluster, seen)
    send(cluster)
    cluster.wait_for_isr("kept", 2)
    assert [cluster.broker(broker).state for broker in (1, 2)] == ["running", "running"]
    assert len(read_all(cluster.bootstrap, "kept", 2)) == 2 * RECORDS
    for broker in (1, 2):
        own = [one for one in snapshots.held_in(metadata(cluster, broker)) if one.end_offset > 0]
        assert [snapshots.read_image(metadata(cluster, broker), one).topics for one in own], "brokers' snapshots too"


def test_a_broker_comes_back_to_a_log_that_was_trimmed(cluster: RealCluster) -> None:
    cluster.create(NewTopic("both", 2, 2))
    cluster.wait_for_isr("both", 2)
    away = cluster.broker(2)
    away.kill()
    # It has read nothing beyond this offset.
    end = quorum_end(cluster)
    cluster.wait_for_the_end_of(2)
    for first in range(0, TOPICS, AT_A_TIME):
        cluster.create(*(NewTopic(f"t{number}", 3, 1) for number in range(first, first + AT_A_TIME)))
    wait_until(lambda: begins(log(cluster, 100)) > end and begins(log(cluster, 101)) > end, "logs to be trimmed")
    cluster.restart(2)
    # It got the snapshot: its log begins there, and not where it stopped.
    assert begins(metadata(cluster, 2)) > end
    cluster.wait_for_isr("both", 2)
    cluster.agree("both")
    # Now it is the only broker that knows these changes from a snapshot alone.
    cluster.broker(1).kill()
    wait_until(lambda: {held["leader"] for held in cluster.partitions("both").values()} == {2}, "it to lead")
    sender = ConfluentSender(cluster.bootstrap)
    for number in range(RECORDS):
        sender.send("both", number % 2, b"%d" % number)
    sender.finish(TIMEOUT_S)
    assert sender.failed == []
    assert len(read_all(cluster.bootstrap, "both", 2)) == RECORDS
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    assert {f"t{number}" for number in range(TOPICS)} <= set(admin.list_topics(timeout=TIMEOUT_S).topics)
