"""From which bus a cluster is led: a gateway on another one changes nothing, and handing back and taking over do."""

import json
from pathlib import Path

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.client.session import Session
from brokers.gateways.zk.client.transactions import Create, Delete, Set
from brokers.gateways.zk.moves.adoption import AdoptionError
from brokers.gateways.zk.moves.hand_back import hand_back
from brokers.gateways.zk.term.bus_note import OtherBusError, noted, noted_anew
from brokers.gateways.zk.znodes import ZnodeError
from tests.brokers.gateways.zk.decided import ID
from tests.brokers.gateways.zk.term.other_bus import nothing, other_bus, refusals
from tests.brokers.gateways.zk.tree import Tree
from tests.brokers.gateways.zk.zookeeper import Zookeeper
from tests.support.znode_cluster import CLUSTER_ID, PATIENT, ZnodeCluster

TEXT = b'{"version":1,"bus":5,"controller_epoch":7}'
BY_HAND = b'{"version":1,"bus":5}'


def tree(
    *, topic_id: str = ID, is_led: bool = True, note: bytes | None = None, epoch: int = 6, controller: int | None = None
) -> Session:
    found = Tree()
    text = json.dumps({"version": 3, "partitions": {"0": [1]}, "topic_id": topic_id}).encode()
    found.make([Create("/brokers/topics/t", text)])
    found.make([Create("/brokers/topics/t/partitions", b"")] if is_led else [])
    found.make([Create(znodes.BUS, note)] if note is not None else [])
    found.make([Create(znodes.CONTROLLER_EPOCH, str(epoch).encode())])
    found.make([Create(znodes.CONTROLLER, znodes.controller_text(controller, 1))] if controller is not None else [])
    return found.session


def test_the_first_term_notes_the_bus_and_the_next_one_finds_it() -> None:
    assert noted(Tree().session, 5, 7) == [Create(znodes.BUS, TEXT)]
    for note in (TEXT, BY_HAND):
        assert noted(tree(note=note, epoch=7), 5, 7) == [Set(znodes.BUS, TEXT)]


def test_a_bus_that_does_not_know_what_a_broker_decided_as_the_controller_is_refused() -> None:
    with pytest.raises(OtherBusError, match=r"of epoch 8 after the gateway of epoch 7 .* --adopt"):
        noted(tree(note=TEXT, epoch=8), 5, 9)
    # Gateways take turns. A note that was written by hand has no epoch.
    assert noted(tree(note=TEXT, epoch=8, controller=101), 5, 7) == [Set(znodes.BUS, TEXT)]
    assert noted(tree(note=BY_HAND, epoch=8), 5, 7) == [Set(znodes.BUS, TEXT)]


def test_another_bus_is_refused_whatever_it_knows() -> None:
    with pytest.raises(
        OtherBusError, match=r"led from bus 5, and not from 6 .*: use that bus, or hand the cluster back"
    ):
        noted(tree(note=TEXT), 6, 7)
    with pytest.raises(ZnodeError, match=znodes.BUS):
        noted(tree(note=b"{}"), 5, 7)


def test_a_cluster_that_was_led_without_a_note_is_refused() -> None:
    with pytest.raises(OtherBusError, match=r"1 topics of this cluster were led.* create /isrflow_bus with the text"):
        noted(tree(), 5, 7)
    # A broker wrote it, and no gateway has led it.
    assert noted(tree(is_led=False), 5, 7) == [Create(znodes.BUS, TEXT)]


def test_taking_over_notes_the_new_bus() -> None:
    done = Delete(znodes.ADOPTION)
    assert noted_anew(tree(), 5, 7) == [Create(znodes.BUS, TEXT), done]
    assert noted_anew(tree(note=b"5"), 5, 7) == [Set(znodes.BUS, TEXT), done]


def test_a_gateway_on_a_new_bus_removes_nothing(
    cluster: ZnodeCluster, zookeeper: Zookeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    cluster.lead(lambda: cluster.get("/controller_epoch") == 8, nothing)
    assert cluster.get(znodes.BUS) == {"version": 1, "bus": cluster.bus.bus_id(), "controller_epoch": 8}
    before = dict(zookeeper.znodes)

    found = refusals(monkeypatch)
    with other_bus(cluster, tmp_path / "new.db"):
        # It tries again, and neither ends nor leads.
        cluster.lead(lambda: len(found) > 1, nothing)
        assert zookeeper.znodes == before
        # Nor is the cluster handed back from there.
        with pytest.raises(OtherBusError):
            hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
        assert zookeeper.znodes == before

    cluster.lead(lambda: cluster.get("/controller_epoch") == 9, nothing)


def test_a_cluster_that_is_handed_back_is_taken_over_onto_a_new_bus(cluster: ZnodeCluster, tmp_path: Path) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    cluster.lead(lambda: cluster.get("/controller_epoch") == 8, nothing)
    assert hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    assert not cluster.is_there(znodes.BUS)

    former = cluster.bus
    with other_bus(cluster, tmp_path / "new.db"):
        cluster.put("/controller", {"version": 2, "brokerid": 1, "timestamp": "1"})
        cluster.adopt()
        assert cluster.get(znodes.BUS)["bus"] == cluster.bus.bus_id() != former.bus_id()
        cluster.lead(lambda: cluster.get("/controller_epoch") == 10, nothing)
        assert cluster.is_there("/brokers/topics/t/partitions/0/state")


def test_a_topic_that_brokers_made_under_their_own_controller_is_not_removed(
    cluster: ZnodeCluster, zookeeper: Zookeeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.client.delete("/controller")
    cluster.lead(lambda: cluster.get("/controller_epoch") == 7, nothing)
    # Somebody freed the place while no gateway ran, a broker took it, and later all brokers stopped.
    cluster.client.delete("/controller")
    cluster.client.set("/controller_epoch", b"8")
    cluster.put_topic("u", {0: [1, 2]}, version=0)
    before = dict(zookeeper.znodes)
    found = refusals(monkeypatch)
    cluster.lead(lambda: len(found) > 1, nothing)
    with pytest.raises(OtherBusError):
        hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus, [100])
    assert cluster.get(znodes.BUS)["is_outdated"]
    assert zookeeper.znodes | {znodes.BUS: before[znodes.BUS]} == before

    cluster.adopt()
    cluster.lead(lambda: cluster.get("/controller_epoch") == 10, nothing)
    assert cluster.decided()["u-0"][1] == 7
    assert hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    assert cluster.is_there("/brokers/topics/u/partitions/0/state")


def test_a_take_over_that_is_given_up_leaves_no_note(cluster: ZnodeCluster) -> None:
    cluster.put(znodes.BUS, {"version": 1, "bus": 5})
    cluster.put_topic("u", {0: [1, 2], 2: [2, 1]})
    with pytest.raises(AdoptionError):
        cluster.adopt()
    assert not cluster.is_there(znodes.BUS)
