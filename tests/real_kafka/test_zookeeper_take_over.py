"""Taking over, handing back, and fights for the controller, on a real ZooKeeper whose brokers are znodes."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import structs

from brokers.gateways.zk import znodes
from brokers.gateways.zk.adoption import AdoptionError
from brokers.gateways.zk.bus_note import give_up, under_way
from brokers.gateways.zk.hand_back import HandBackError, hand_back
from brokers.gateways.zk.requests.partition_states import LEADER_DURING_DELETE
from brokers.gateways.zk.transactions import Create
from brokers.gateways.zk.zookeeper_errors import ControllerMovedError, ZookeeperError
from brokers.launch.kafka.zookeeper import ZookeeperProcess
from bus.image import view_of_image
from tests.brokers.gateways.zk.door import Door
from tests.support.rules_engine import RulesEngine
from tests.support.znode_cluster import CLUSTER_ID, IDS, PATIENT, ZnodeCluster

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(600)]
GATEWAYS = frozenset({100, 101})
OLD = structs.replace(PATIENT, inter_broker_protocol_version="2.6")


@pytest.fixture
def cluster(zookeeper: ZookeeperProcess, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ZnodeCluster]:
    cluster = ZnodeCluster(zookeeper.address, request.node.name, tmp_path / "bus.db")
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", broker_session_timeout_ms=600_000, auto_leader_rebalance_enable=False)
    yield cluster
    engine.stop()
    cluster.close()


def test_a_take_over_keeps_what_there_is_and_does_what_was_asked_for(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2], 1: [2, 1]})
    cluster.put_topic("u", {0: [3, 1]})
    cluster.put_topic("v", {0: [1]})
    cluster.put("/admin/delete_topics/v", "")
    moves = {"version": 1, "partitions": [{"topic": "t", "partition": 1, "replicas": [1]}]}
    cluster.put("/admin/reassign_partitions", moves)
    cluster.adopt()
    decided = cluster.decided()
    assert decided["t-0"] == (1, 7, (1, 2), 12)
    # Broker 3 is gone.
    assert decided["u-0"] == (1, 8, (1,), 13)
    # The move had only to be begun, because 1 is in sync.
    assert decided["t-1"][0] == 1
    topics = {held["topic"]: held for held in view_of_image(cluster.bus.image())["topics"]}
    assert (topics["t"]["topic_id"], topics["t"]["config"]) == (IDS["t"], {"retention.ms": "1000"})
    assert topics["v"]["state"] == "deleting"
    assert (cluster.get("/controller")["brokerid"], cluster.get("/controller_epoch")) == (100, 7)
    gone = (znodes.ADOPTION, "/admin/delete_topics/v")
    assert [path for path in gone if cluster.is_there(path)] == []
    # A gateway that starts again has nothing to take over.
    cluster.adopt()
    assert cluster.get("/controller_epoch") == 7


def test_an_interrupted_take_over_is_continued(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.put_topic("u", {0: [2, 1]})
    found = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 7, "partition_epoch": 12}
    cluster.ask("adopt_topic", topic="t", topic_id=IDS["t"], partitions=[found])
    first = cluster.session()
    first.take(100, GATEWAYS, 0, 1, adopting=True, notes=lambda epoch: under_way(first, cluster.bus.bus_id()))
    first.close()
    second = cluster.session()
    with pytest.raises(ZookeeperError, match="was not taken over completely: start the gateway with --adopt"):
        second.take(100, GATEWAYS, 0, 1)
    second.close()
    cluster.adopt()
    assert cluster.decided().keys() == {"t-0", "u-0"}
    assert not cluster.is_there(znodes.ADOPTION)


def test_what_cannot_be_led_is_left_to_its_controller(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.put_topic("u", {0: [1, 2], 2: [2, 1]})
    with pytest.raises(AdoptionError, match="/brokers/topics/u: partitions: numbers from 0 on without a gap"):
        cluster.adopt()
    assert not cluster.is_there("/controller")
    assert not cluster.is_there(znodes.ADOPTION)
    assert cluster.client.get("/brokers/topics/t/partitions/0/state")[1].version == 12


def test_topics_without_ids_get_some_if_their_brokers_know_none(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2]}, topic_id=None, adding_replicas={"0": [2]})
    with pytest.raises(AdoptionError, match="topic_id: a text is expected"):
        cluster.adopt()
    cluster.put("/controller", {"version": 2, "brokerid": 1, "timestamp": "1"})
    cluster.adopt(OLD)
    found = cluster.get("/brokers/topics/t")
    [topic] = view_of_image(cluster.bus.image())["topics"]
    assert (topic["topic"], topic["topic_id"]) == ("t", found["topic_id"])
    assert (found["partitions"], found["adding_replicas"]) == ({"0": [1, 2]}, {"0": [2]})
    assert cluster.decided()["t-0"][:2] == (1, 8)


def test_a_bus_with_topics_takes_no_cluster_over(cluster: ZnodeCluster) -> None:
    cluster.ask("adopt_topic", topic="t", topic_id=IDS["t"], partitions=[{"replicas": [1]}])
    with pytest.raises(AdoptionError, match=r"already has topics \(t\)"):
        cluster.adopt()
    assert cluster.get("/controller")["brokerid"] == 1


def test_everything_that_was_decided_is_handed_back(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2], 1: [2, 1]})
    cluster.put_topic("u", {0: [1, 2]})
    cluster.adopt()
    cluster.ask("gateway_started", gateway=100, incarnation="g", voters=[100, 101])
    epochs = {held["broker"]: held["broker_epoch"] for held in view_of_image(cluster.bus.image())["brokers"]}
    for first_id_min in (0, 4_000):
        cluster.ask("allocate_producer_ids", broker=1, broker_epoch=epochs[1], first_id_min=first_id_min)
    cluster.ask("delete_topic", topic="u")
    cluster.ask("broker_heartbeat", broker=2, broker_epoch=epochs[2], want_fence=True, want_shutdown=False)
    # A broker made it when it started.
    cluster.client.create("/latest_producer_id_block")
    # Deleted while no gateway led, and made by a broker for itself.
    cluster.put_topic("w", {0: [1]})
    cluster.put("/brokers/topics/x", {"version": 3, "partitions": {"0": [1, 100]}, "topic_id": "x"})

    assert hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    data, stat = cluster.client.get("/brokers/topics/t/partitions/1/state")
    state = json.loads(data)
    assert (state["leader"], state["leader_epoch"], state["isr"], stat.version) == (1, 8, [1], 13)
    block = {"version": 1, "broker": 100, "block_start": "4000", "block_end": "4999"}
    assert cluster.get("/latest_producer_id_block") == block
    assert cluster.client.get_children("/admin/delete_topics") == ["u", "w"]
    assert [path for path in ("/controller", "/brokers/topics/x") if cluster.is_there(path)] == []
    assert cluster.get("/controller_epoch") == 8


def test_a_cluster_with_its_own_controller_is_not_handed_back(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    assert not hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    assert cluster.get("/controller")["brokerid"] == 1
    cluster.client.delete("/controller")
    with pytest.raises(HandBackError, match="no gateway has led brokers by this bus"):
        hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    assert cluster.get("/controller_epoch") == 6


def test_of_two_gateways_the_later_one_is_obeyed(cluster: ZnodeCluster) -> None:
    cluster.client.delete("/controller")
    first, second = cluster.session(), cluster.session()
    assert first.take(100, GATEWAYS, 0, 1) == 7
    assert second.take(101, GATEWAYS, 0, 2) == 8
    with pytest.raises(ControllerMovedError, match="101 is the controller now"):
        first.write([Create("/brokers/topics/t", b"{}")])
    with pytest.raises(ControllerMovedError):
        give_up(first)
    assert cluster.get("/controller")["brokerid"] == 101
    second.write([Create("/brokers/topics/t", b"{}")])
    first.close()
    second.close()


def test_brokers_forget_a_topic_that_was_deleted_while_no_gateway_led(cluster: ZnodeCluster) -> None:
    cluster.client.delete("/controller")
    cluster.put_topic("t", {0: [1, 2]})
    cluster.put(znodes.BUS, {"version": 1, "bus": cluster.bus.bus_id()})

    door = Door()

    async def listen() -> None:
        listening = await asyncio.start_server(door.serve, "127.0.0.1", 0)
        cluster.put_broker(3, listening.sockets[0].getsockname()[1])

    cluster.lead(lambda: ("t", 0, LEADER_DURING_DELETE) in _told_of(door), listen)
    assert cluster.client.get_children("/brokers/topics") == []


def test_what_tools_write_for_the_controller_is_done(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2], 1: [2, 1]})
    cluster.put_topic("u", {0: [1, 2]})
    path = "/brokers/topics/t/partitions/1/state"
    cluster.client.set(path, json.dumps(cluster.get(path) | {"leader": 1, "leader_epoch": 8}).encode())
    cluster.adopt()
    assert cluster.decided()["t-1"] == (1, 8, (2, 1), 13)
    state = {"version": 1, "partitions": [{"topic": "t", "partition": 1}, {"topic": "none", "partition": 0}]}
    moves = [{"topic": "t", "partition": 0, "replicas": [2]}, {"topic": "t", "partition": 1, "replicas": [9]}]

    async def ask() -> None:
        cluster.put("/admin/preferred_replica_election", state)
        cluster.put("/admin/reassign_partitions", {"version": 1, "partitions": moves})
        cluster.put("/admin/delete_topics/u", "")
        cluster.put("/admin/delete_topics/none", "")

    paths = ("/admin/preferred_replica_election", "/admin/reassign_partitions", "/admin/delete_topics/u")
    done = [*paths, "/admin/delete_topics/none"]
    cluster.lead(lambda: not any(map(cluster.is_there, done)), ask)
    view = view_of_image(cluster.bus.image())
    replicas = {f"{held['topic']}-{held['partition']}": held["replicas"] for held in view["partitions"]}
    # 9 is no broker, so that move was refused.
    assert (replicas["t-0"], replicas["t-1"]) == ((2,), (2, 1))
    assert cluster.decided()["t-1"][0] == 2
    assert {held["topic"]: held["state"] for held in view["topics"]} == {"t": "created", "u": "deleting"}


def test_a_broker_that_notes_a_lost_directory_is_told_again_what_it_leads(cluster: ZnodeCluster) -> None:
    cluster.client.delete("/controller")
    cluster.put_topic("t", {0: [3, 2]})
    cluster.adopt()
    door = Door()
    note = f"{znodes.LOG_DIR_EVENTS}/log_dir_event_0000000000"
    noted: list[str] = []

    async def listen() -> None:
        listening = await asyncio.start_server(door.serve, "127.0.0.1", 0)
        cluster.put_broker(3, listening.sockets[0].getsockname()[1])

    def is_told_again() -> bool:
        told = door.names.count("LeaderAndIsr")
        if told == 1 and not noted:
            noted.append(note)
            cluster.put(f"{znodes.LOG_DIR_EVENTS}/log_dir_event_unreadable", "x")
            cluster.put(note, {"version": 1, "broker": 3, "event": 1})
        return told == 2

    cluster.lead(is_told_again, listen)
    assert cluster.client.get_children(znodes.LOG_DIR_EVENTS) == []


def test_a_leader_comes_from_the_isr_that_was_written_although_another_one_was_elected(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2], 1: [2, 1]})
    cluster.adopt()
    epochs = {held["broker"]: held["broker_epoch"] for held in view_of_image(cluster.bus.image())["brokers"]}
    path = "/brokers/topics/t/partitions/0/state"

    # The gateway marks what it writes into ZooKeeper as its own.
    cluster.ask("alter_reassignment", topic="t", partition=0, replicas=[2, 1])
    decided = cluster.decided()["t-0"]
    cluster.lead(lambda: cluster.get(path)["leader_epoch"] == decided[1], nothing, OLD)
    assert cluster.get(path)["isrflow_partition_epoch"] == decided[3]
    # While no gateway leads, 2 is elected in place of 1, which has written that 2 is not in sync.
    cluster.ask("broker_heartbeat", broker=1, broker_epoch=epochs[1], want_fence=True, want_shutdown=False)
    leader, leader_epoch, *_ = cluster.decided()["t-0"]
    assert leader == 2
    cluster.write_isr(path, 1)

    def leads_again() -> bool:
        held = cluster.get(path)
        return held["leader"] == 1 and held["leader_epoch"] > leader_epoch

    cluster.lead(leads_again, nothing, OLD)
    assert (cluster.get(path)["isr"], cluster.decided()["t-0"][2]) == ([1], (1,))
    # Broker 1 is heard again as soon as a gateway leads, so the ISR that the other leader never left stays.
    other = "/brokers/topics/t/partitions/1/state"
    assert cluster.get(other)["isr"] == [2, 1]
    # Handed back, a leader's own write stays.
    version = cluster.client.set(path, json.dumps(cluster.get(path) | {"isr": [1, 2]}).encode()).version
    cluster.ask("elect_leaders", election_type="preferred", partitions=None)
    assert hand_back(cluster.root, CLUSTER_ID, OLD, cluster.bus)
    assert (cluster.get(path)["isr"], cluster.client.get(path)[1].version) == ([1, 2], version)


def test_what_a_leader_wrote_before_it_was_moved_away_is_kept(cluster: ZnodeCluster) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    path = "/brokers/topics/t/partitions/0/state"

    # The move has only to be begun, because 2 is in sync. While no gateway leads, 1 writes that 2 no longer is.
    cluster.ask("alter_reassignment", topic="t", partition=0, replicas=[2])
    assert cluster.decided()["t-0"][0] == 2
    cluster.write_isr(path, 1)
    cluster.lead(lambda: "isrflow_partition_epoch" in cluster.get(path), nothing, OLD)

    def is_kept() -> bool:
        state, found = cluster.get(path), cluster.get("/brokers/topics/t")
        assert (state["leader"], state["isr"]) == (1, [1])
        return (found["partitions"], found["removing_replicas"]) == ({"0": [2, 1]}, {"0": [1]})

    assert is_kept()
    # The same happens again, and then the cluster is handed back, where nobody decides any more.
    held = cluster.decided()["t-0"]
    written = {"broker": 1, "leader_epoch": held[1], "partition_epoch": held[3], "isr": [1, 2]}
    cluster.ask("isr_written", topic="t", partition=0, **written)
    assert cluster.decided()["t-0"][2] == (2,)
    cluster.write_isr(path, 1)
    assert hand_back(cluster.root, CLUSTER_ID, OLD, cluster.bus)
    assert is_kept()


async def nothing() -> None:
    """Add nothing to what is there."""


def _told_of(door: Door) -> set[tuple[str, int, int]]:
    return {
        (topic["TopicName"], one["PartitionIndex"], one["Leader"])
        for request in door.requests
        if request.name == "UpdateMetadata"
        for topic in request.values["TopicStates"]
        for one in topic["PartitionStates"]
    }
