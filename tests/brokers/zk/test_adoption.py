"""When a cluster is taken over, and what a topic in ZooKeeper becomes then."""

from pathlib import Path
from threading import Thread

import pytest

from brokers.gateways.zk import adoption
from brokers.gateways.zk.adoption import AdoptionError, adopted
from brokers.gateways.zk.stored import StoredState, StoredTopic
from brokers.gateways.zk.znodes import StateZnode
from state.adoption_events import FoundPartition
from tests.brokers.zk.conftest import POLICY
from tests.brokers.zk.decided import ID
from tests.brokers.zk.zookeeper import Zookeeper
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until
from tests.support.znode_cluster import ZnodeCluster

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
    with pytest.raises(AdoptionError, match=f"/brokers/topics/t: {complaint}"):
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
