"""When a cluster is taken over, and what a topic in ZooKeeper becomes then."""

from pathlib import Path
from threading import Thread

import pytest
from kazoo.exceptions import NoAuthError
from msgspec.structs import replace

from brokers.gateways.zk import adoption, znodes
from brokers.gateways.zk.adopted_topic import adopted
from brokers.gateways.zk.adoption import AdoptionError
from brokers.gateways.zk.bus_note import text_of
from brokers.gateways.zk.stored import StoredState, StoredTopic
from brokers.gateways.zk.transactions import Create
from brokers.gateways.zk.znodes import StateZnode, ZnodeError
from state.adoption_events import FoundPartition
from tests.brokers.gateways.zk.conftest import POLICY
from tests.brokers.gateways.zk.decided import ID
from tests.brokers.gateways.zk.zookeeper import Znode, Zookeeper
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.znode_cluster import IDS, PATIENT, ZnodeCluster

LED = StoredState(StateZnode(leader=2, leader_epoch=7, controller_epoch=3, isr=(2, 1)), 12)


def stored(partitions: str, more: str = "", **states: StoredState) -> StoredTopic:
    text = f'{{"version":3,"partitions":{partitions},"topic_id":"{ID}"{more}}}'.encode()
    return StoredTopic("t", text, {"a": "1"}, {int(name[1:]): state for name, state in states.items()})


def test_the_version_of_a_state_is_the_partition_epoch() -> None:
    event = adopted(stored('{"1":[2,3],"0":[1,2]}', p0=LED), 5)
    assert (event.time_ms, event.topic, event.topic_id, event.config) == (5, "t", ID, {"a": "1"})
    assert event.partitions == (
        FoundPartition(replicas=(1, 2), isr=(2, 1), leader=2, leader_epoch=7, partition_epoch=12),
        FoundPartition(replicas=(2, 3)),
    )


def test_a_leader_that_recovers_goes_on_recovering() -> None:
    state = StoredState(StateZnode(2, 7, 3, (2,), leader_recovery_state=1), 12)
    [found] = adopted(stored('{"0":[1,2]}', p0=state), 5).partitions
    assert found.leader_recovery_state == "RECOVERING"


def test_replicas_that_are_removed_come_last() -> None:
    moving = ',"adding_replicas":{"0":[4]},"removing_replicas":{"0":[1]}'
    [found] = adopted(stored('{"0":[1,4,2]}', moving, p0=LED), 5).partitions
    assert (found.replicas, found.adding_replicas, found.removing_replicas) == ((4, 2, 1), (4,), (1,))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b'{"version":2,"partitions":{"0":[1]}}', "topic_id: a text is expected"),
        (b'{"version":3,"partitions":{"1":[1]},"topic_id":"i"}', "partitions: numbers from 0 on"),
    ],
)
def test_what_the_engine_cannot_lead_is_named(text: bytes, complaint: str) -> None:
    with pytest.raises(ZnodeError, match=f"/brokers/topics/t: {complaint}"):
        adopted(StoredTopic("t", text, None, {0: LED}), 5)


def test_a_cluster_keeps_its_controller_until_an_engine_answers(
    zookeeper: Zookeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adoption, "DECIDED_TIMEOUT_S", 0.2)
    cluster = ZnodeCluster("memory", "c", tmp_path / "bus.db")
    cluster.put_topic("t", {0: [1, 2]})
    before, deleted = dict(zookeeper.znodes), []
    delete = zookeeper.delete

    def note(path: str) -> None:
        deleted.append(path)
        delete(path)

    monkeypatch.setattr(zookeeper, "delete", note)
    with pytest.raises(AdoptionError, match="start one on this bus first"):
        cluster.adopt()
    assert (zookeeper.znodes, deleted) == (before, [])
    cluster.close()


def test_a_take_over_goes_on_only_from_the_bus_that_began_it(cluster: ZnodeCluster, zookeeper: Zookeeper) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    began = cluster.session()
    began.take(100, cluster.identity.gateways, 0, 1, adopting=True, notes=lambda epoch: [Create(znodes.ADOPTION, b"")])
    began.close()
    found = {"replicas": [1, 2], "isr": [1, 2], "leader": 1, "leader_epoch": 7, "partition_epoch": 12}
    cluster.ask("adopt_topic", topic="u", topic_id=IDS["u"], partitions=[found])
    # It could be any topic of any cluster, and would be written into this ZooKeeper.
    for other in (b"", text_of(5)):
        zookeeper.set(znodes.ADOPTION, other)
        before = dict(zookeeper.znodes)
        with pytest.raises(AdoptionError, match=r"the bus already has topics \(u\)"):
            cluster.adopt()
        assert zookeeper.znodes == before
    zookeeper.set(znodes.ADOPTION, text_of(cluster.bus.bus_id()))
    cluster.adopt()
    assert cluster.decided().keys() == {"t-0", "u-0"}
    assert not cluster.is_there(znodes.ADOPTION)


@pytest.mark.parametrize(
    ("controller", "complaint"),
    [
        ({"brokerid": 1}, r"the bus already has topics \(t\)"),
        ({"brokerid": 3_000, "kraftControllerEpoch": 5}, "controller 3000 migrates this cluster"),
        (None, r"the bus already has topics \(t\)"),
    ],
)
def test_a_take_over_does_not_go_on_where_another_controller_has_led_since(
    cluster: ZnodeCluster, zookeeper: Zookeeper, controller: dict[str, int] | None, complaint: str
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.ask("adopt_topic", topic="t", topic_id=IDS["t"], partitions=[{"replicas": [1, 2]}])
    cluster.client.create(znodes.ADOPTION, text_of(cluster.bus.bus_id()))
    cluster.client.delete("/controller")
    if controller is not None:
        cluster.put("/controller", {"version": 2, "timestamp": "1"} | controller)
    before = dict(zookeeper.znodes)
    with pytest.raises(AdoptionError, match=complaint):
        cluster.adopt()
    assert zookeeper.znodes == before


def test_a_take_over_that_another_bus_left_begins_again(cluster: ZnodeCluster, zookeeper: Zookeeper) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.client.create(znodes.ADOPTION, text_of(5))
    seen: list[bytes] = []

    def note(path: str) -> None:
        if path == znodes.topic_path("t"):
            seen.append(zookeeper.znodes[znodes.ADOPTION].data)

    zookeeper.before_read = note
    cluster.adopt()
    # Killed now, it would go on from this bus.
    assert set(seen) == {text_of(cluster.bus.bus_id())}
    assert not cluster.is_there(znodes.ADOPTION)


def test_a_topic_that_the_bus_does_not_take_leaves_the_cluster_to_its_controller(
    cluster: ZnodeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put_topic("t", {number: [1, 2] for number in range(50)})
    monkeypatch.setattr(adoption, "MAX_EVENT_BYTES", 2_000)
    with pytest.raises(AdoptionError, match=r"^t: the event is larger than the bus takes \([0-9]+ bytes\)"):
        cluster.adopt()
    assert not any(map(cluster.is_there, (znodes.CONTROLLER, znodes.ADOPTION)))


def test_a_take_over_that_acls_forbid_ends_at_once(
    cluster: ZnodeCluster, zookeeper: Zookeeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put_topic("t", {0: [1, 2]}, topic_id=None)
    write, path = zookeeper.set, znodes.topic_path("t")

    def forbid(written: str, data: bytes, version: int = -1) -> Znode:
        if written == path:
            raise NoAuthError
        return write(written, data, version)

    monkeypatch.setattr(zookeeper, "set", forbid)
    with pytest.raises(AdoptionError, match=f"a write was refused: {path}: NoAuthError"):
        cluster.adopt(replace(PATIENT, inter_broker_protocol_version="2.6"))
    # It was taken once.
    assert cluster.get("/controller_epoch") == 7
    assert not any(map(cluster.is_there, (znodes.CONTROLLER, znodes.ADOPTION)))


def test_a_gateway_that_waits_for_the_engine_leaves_the_place_to_one_that_took_it(
    zookeeper: Zookeeper, tmp_path: Path
) -> None:
    cluster = ZnodeCluster("memory", "c", tmp_path / "bus.db")
    adopting = Thread(target=cluster.adopt)
    adopting.start()
    wait_until(lambda: cluster.bus.last_seq(), "the question to the engine")
    zookeeper.set("/controller", b'{"version":2,"brokerid":101,"timestamp":"1"}')
    engine = RulesEngine()
    engine.start(tmp_path / "bus.db", **POLICY)
    adopting.join(TIMEOUT_S)
    assert not adopting.is_alive()
    assert (cluster.get("/controller")["brokerid"], cluster.get("/controller_epoch")) == (101, 6)
    engine.stop()
    cluster.close()
