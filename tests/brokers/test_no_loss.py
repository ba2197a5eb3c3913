"""Nothing that was acknowledged is lost, whatever happens to the leaders."""

import threading
import time

import pytest

from tests.support.clients import SENDERS, Sender, lost_records, read_all
from tests.support.mock_cluster import MockCluster
from tests.support.waiting import TIMEOUT_S, wait_until

RECORDS = 20_000
PARTITIONS = 6
KILLS = 5
RECORDS_A_SECOND = 2_500
ASSIGNMENT = {str(p): [1 + (p + i) % 3 for i in range(3)] for p in range(PARTITIONS)}

pytestmark = pytest.mark.mock_brokers


# tests/real_kafka kills leaders under the Spark job with both clients, and the demo does so with these brokers.
@pytest.mark.parametrize("client", [pytest.param("kafka-python", marks=pytest.mark.smoke), "confluent-kafka"])
def test_leaders_are_killed_and_come_back_five_times(cluster: MockCluster, client: str) -> None:
    cluster.create_topic("t", ASSIGNMENT, min_insync_replicas="2")
    sender: Sender = SENDERS[client](cluster.bootstrap())
    released = threading.Semaphore(0)
    sending = threading.Thread(target=_send, args=(sender, released), daemon=True)
    sending.start()

    for kill in range(KILLS):
        released.release()
        time.sleep(0.5)
        _kill_a_leader(cluster, kill)
    sending.join(TIMEOUT_S)
    assert not sending.is_alive()
    sender.finish(TIMEOUT_S)

    assert sender.failed == []
    assert len(sender.acknowledged) == RECORDS
    _check(cluster, sender)


def _send(sender: Sender, released: threading.Semaphore) -> None:
    """Send an equal share of the records around each kill, at an even pace."""
    for number in range(RECORDS):
        if number % (RECORDS // KILLS) == 0:
            assert released.acquire(timeout=TIMEOUT_S)
        if number % 100 == 0:
            time.sleep(100 / RECORDS_A_SECOND)
        sender.send("t", number % PARTITIONS, b"%d" % number)


def _kill_a_leader(cluster: MockCluster, kill: int) -> None:
    leader = cluster.leader("t", kill % PARTITIONS)
    cluster.kill(leader)
    wait_until(lambda: leader not in {p["leader"] for p in cluster.partitions("t")}, "new leaders")
    time.sleep(0.5)
    cluster.start(leader)
    cluster.wait_for_isr("t", 3)


def _check(cluster: MockCluster, sender: Sender) -> None:
    """Check that each record is stored once, at its acknowledged offset, and in the order in which it was sent."""
    read = read_all(cluster.bootstrap(), "t", PARTITIONS)
    assert len({record.value for record in read}) == len(read), "a record was stored twice"
    assert lost_records(sender.acknowledged, read) == {}
    for partition in range(PARTITIONS):
        values = [int(record.value) for record in read if record.partition == partition]
        assert values == sorted(values)
    _check_logs_alike(cluster)


def _check_logs_alike(cluster: MockCluster) -> None:
    """Check that after replication the three logs of each partition are equal, byte for byte."""

    def logs(partition: int) -> set[bytes]:
        folders = [cluster.folder(broker) / f"t-{partition}" for broker in cluster.brokers]
        return {b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))) for folder in folders}

    for partition in range(PARTITIONS):
        wait_until(lambda partition=partition: len(logs(partition)) == 1, f"the logs of t-{partition} to be alike")
