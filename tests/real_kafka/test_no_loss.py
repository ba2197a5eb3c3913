"""Nothing that was acknowledged is lost, doubled or out of order, whatever fails: brokers, gateways, the engine."""

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import NewTopic
from msgspec.structs import replace

from brokers.launch.kafka.node import KafkaNode
from brokers.launch.ports import free_ports
from bus.image import read_image
from tests.faults.disks import small_disk_under
from tests.real_kafka.traffic import PARTITIONS, Traffic
from tests.support.clients import read_all
from tests.support.freezing import freeze_process
from tests.support.real_cluster import POLICY, RealCluster
from tests.support.spark_engine import SparkEngine
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = [pytest.mark.kraft, pytest.mark.spark]
TOPIC = "t"
FROZEN_S = 8.0


@pytest.fixture(scope="module")
def engine() -> Iterator[SparkEngine]:
    """The job as users run it."""
    engine = SparkEngine()
    yield engine
    engine.stop()


@pytest.fixture(scope="module")
def disks() -> Iterator[ExitStack]:
    """Disks that stay until the cluster has ended."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine, disks: ExitStack) -> Iterator[RealCluster]:
    """Three brokers behind two gateways, under an engine that decides."""
    cluster = RealCluster(tmp_path_factory.mktemp("real"), gateways=2)
    engine.start(cluster.bus_path, **POLICY)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def traffic(cluster: RealCluster) -> Iterator[Traffic]:
    """Traffic during all tests, which is checked after the last one."""
    names = (TOPIC, f"{TOPIC}-whole")
    cluster.create(*(NewTopic(name, PARTITIONS, 3, config={"min.insync.replicas": "2"}) for name in names))
    for name in names:
        cluster.agree(name)
    traffic = Traffic(cluster.bootstrap, TOPIC)
    traffic.goes_on()
    yield traffic
    traffic.end()
    cluster.agree(TOPIC)


@pytest.fixture(autouse=True)
def traffic_goes_on(traffic: Traffic) -> Iterator[None]:
    """Check after each test that nothing which it did has ended the traffic."""
    yield
    traffic.goes_on()


def test_gateways_are_killed_and_frozen_and_then_each_broker_is_killed_in_turn(
    cluster: RealCluster, traffic: Traffic, tmp_path: Path
) -> None:
    """One test, because starting a process again takes longer than the checks."""
    records = records_that_only_broker_1_has(cluster)
    brokers = registered(cluster)
    first = _leader(cluster)
    cluster.gateways[first].kill()
    wait_until(lambda: _leader(cluster) != first, "the other gateway to lead")
    traffic.goes_on()
    a_second_process_with_a_brokers_id_is_refused(cluster, tmp_path)
    cluster.gateways[first].start()
    cluster.gateways[first].wait_until_started()
    a_frozen_gateway_comes_back(cluster, first)
    # The gateways' failures fenced no broker, and admins reach the new leader.
    assert registered(cluster) == brokers
    assert set(cluster.states().values()) == {"active"}
    cluster.create(NewTopic("after-gateways", 1, 3))
    cluster.agree("after-gateways")

    victim = transactions_are_whole_and_groups_continue_where_they_were(cluster, traffic)
    for broker in {1, 2, 3} - {victim}:
        cluster.broker(broker).kill()
        comes_back(cluster, traffic, broker)
    # The process with the right disk has registered again, even though it was killed.
    assert [record.value for record in read_all(cluster.bootstrap, "guarded", 1)] == records


def registered(cluster: RealCluster) -> dict[int, tuple[int, str]]:
    """Return each broker's epoch and incarnation."""
    return {held["broker"]: (held["broker_epoch"], held["incarnation"]) for held in cluster.view()["brokers"]}


def comes_back(cluster: RealCluster, traffic: Traffic, broker: int) -> None:
    """Start a broker that was killed, once others lead."""
    wait_until(lambda: cluster.states()[broker] == "fenced", "the dead broker to be fenced")
    traffic.goes_on()
    cluster.restart(broker)
    cluster.wait_for_isr(TOPIC, 3)


def a_frozen_gateway_comes_back(cluster: RealCluster, other: int) -> None:
    """Freeze the leading gateway for longer than a broker's session, while the other one leads."""
    second = _leader(cluster)
    freeze_process(cluster.bus_path, cluster.gateways[second].pid)
    wait_until(lambda: _leader(cluster) == other, "the first gateway to lead again")
    time.sleep(FROZEN_S)
    cluster.gateways[second].resume()


def records_that_only_broker_1_has(cluster: RealCluster) -> list[bytes]:
    cluster.create(NewTopic("guarded", 1, replica_assignment=[[1]]))
    cluster.agree("guarded")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "log_level": 0})
    records = [b"%d" % number for number in range(10)]
    for record in records:
        producer.produce("guarded", record)
    assert producer.flush(TIMEOUT_S) == 0
    return records


def a_second_process_with_a_brokers_id_is_refused(cluster: RealCluster, tmp_path: Path) -> None:
    """Its disk is empty, and the gateway that had the broker's connection is gone.

    If it were admitted, it would lead partitions whose logs it lacks.
    """
    spec = replace(cluster.broker(1).spec, port=free_ports(1)[0])
    impostor = KafkaNode(spec, tmp_path / "impostor", len(cluster.kafka.nodes))
    impostor.format(cluster.cluster_id)
    impostor.start()
    try:
        refused = b"DUPLICATE_BROKER_REGISTRATION"
        wait_until(
            lambda: impostor.log_file.exists() and refused in impostor.log_file.read_bytes(),
            "the process to be refused",
        )
    finally:
        impostor.kill()


def _leader(cluster: RealCluster) -> int:
    return read_image(cluster.bus.image()).cluster.quorum.voter


def transactions_are_whole_and_groups_continue_where_they_were(cluster: RealCluster, traffic: Traffic) -> int:
    """Kill the coordinator of a producer's transactions between two of them, and return which broker it was."""
    cluster.create(NewTopic("whole", 2, 3))
    cluster.agree("whole")
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "whole", "log_level": 0})
    producer.init_transactions(60)
    for number in range(6):
        producer.begin_transaction()
        for _ in range(5):
            producer.produce("whole", b"%d" % number)
        # The client must know that its partitions are in the transaction. If it ends one whose coordinator died before
        # it could answer that, the next coordinator has no such transaction, and the client gives up for good.
        assert producer.flush(TIMEOUT_S) == 0
        if number % 2:
            producer.abort_transaction(60)
        else:
            producer.commit_transaction(60)
        if number == 2:
            victim = cluster.partitions("__transaction_state")[0]["leader"]
            cluster.broker(victim).kill()
    comes_back(cluster, traffic, victim)
    other = Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "whole", "log_level": 0})
    other.init_transactions(60)
    producer.begin_transaction()
    producer.produce("whole", b"too late")
    with pytest.raises(KafkaException):
        producer.commit_transaction(60)
    first = _consumed(cluster, 7)
    assert sorted(first + _consumed(cluster, 8)) == sorted([b"0", b"2", b"4"] * 5)
    return int(victim)


def _consumed(cluster: RealCluster, count: int) -> list[bytes]:
    """Read a number of records as one member of a group, and commit."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "log_level": 0,
        }
    )
    consumer.subscribe(["whole"])
    values: list[bytes] = []
    deadline = time.monotonic() + 90
    try:
        while len(values) < count and time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None and message.error() is None:
                values.append(message.value())
                consumer.commit(message, asynchronous=False)
    finally:
        consumer.close()
    return values


def test_each_broker_is_frozen_in_turn_for_longer_than_its_session(cluster: RealCluster, traffic: Traffic) -> None:
    for broker in (1, 2, 3):
        cluster.broker(broker).pause()
        wait_until(lambda broker=broker: cluster.states()[broker] == "fenced", "the frozen broker to be fenced")
        traffic.goes_on()
        cluster.broker(broker).resume()
        cluster.wait_for_isr(TOPIC, 3)


def test_the_engine_is_killed_and_started_again(cluster: RealCluster, traffic: Traffic, engine: SparkEngine) -> None:
    engine.kill()
    traffic.goes_on()
    time.sleep(FROZEN_S)
    engine.start(cluster.bus_path, **POLICY)
    traffic.goes_on()
    assert set(cluster.states().values()) == {"active"}


def test_two_brokers_are_restarted_in_turn(cluster: RealCluster) -> None:
    for broker in (1, 2):
        stops_cleanly(cluster, broker)
        cluster.restart(broker)
        cluster.wait_for_isr(TOPIC, 3)


def stops_cleanly(cluster: RealCluster, broker: int) -> None:
    """Stop a broker cleanly, and check that it leads nothing afterwards."""
    assert cluster.broker(broker).stop()
    assert broker not in {held["leader"] for held in cluster.partitions(TOPIC).values()}


def test_a_broker_whose_disk_is_full_ends_and_comes_back(
    cluster: RealCluster, traffic: Traffic, disks: ExitStack
) -> None:
    """The third broker is restarted, too: on a small disk. It stays there, because this test is the last one."""
    broker = cluster.broker(3)
    stops_cleanly(cluster, 3)
    disk = disks.enter_context(small_disk_under(broker.folder, mib=1_000))
    cluster.restart(3)
    cluster.wait_for_isr(TOPIC, 3)
    disk.fill()
    wait_until(lambda: cluster.states()[3] == "fenced", "the broker that cannot write to be fenced")
    wait_until(lambda: broker.state == "stopped", "it to end")
    traffic.goes_on()
    disk.free()
    cluster.restart(3)
    cluster.wait_for_isr(TOPIC, 3)
