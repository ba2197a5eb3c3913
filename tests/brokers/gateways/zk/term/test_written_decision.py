"""ZooKeeper names the decision that it holds, so a bus restored from a backup removes nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from msgspec import json
from msgspec.structs import replace

from brokers.gateways.zk import znodes
from brokers.gateways.zk.moves.hand_back import hand_back
from brokers.gateways.zk.term.bus_note import OtherBusError
from brokers.gateways.zk.term.written_decision import check_has_written, newest_decision, text_of
from brokers.gateways.zk.znodes import ZnodeError
from bus.clock import now_ms
from bus.interface import Bus, Decided, TrimmedError
from state.decisions import encode
from state.events import CreateTopic
from tests.brokers.gateways.zk.decided import led
from tests.brokers.gateways.zk.term.other_bus import nothing, other_bus, refusals
from tests.brokers.gateways.zk.zookeeper import Zookeeper
from tests.support.bus_rows import back_up
from tests.support.znode_cluster import CLUSTER_ID, PATIENT, ZnodeCluster

STATE = "/brokers/topics/{}/partitions/0/state"


def lead_and_create(cluster: ZnodeCluster, topic: str) -> None:
    async def create() -> None:
        event = CreateTopic(time_ms=now_ms(), topic=topic, assignment={"0": (1, 2)})
        cluster.bus.publish([json.encode(event)])

    cluster.lead(lambda: cluster.is_there(STATE.format(topic)), create)


def create_and_lead(cluster: ZnodeCluster, topic: str) -> None:
    """Have the gateway start with a state that has the topic already."""
    cluster.ask("create_topic", topic=topic, assignment={"0": [1, 2]})
    cluster.lead(lambda: cluster.is_there(STATE.format(topic)), nothing)


@pytest.mark.parametrize("lead", [lead_and_create, create_and_lead])
def test_a_bus_that_was_put_back_from_a_backup_removes_no_topic_that_was_created_since(
    cluster: ZnodeCluster,
    zookeeper: Zookeeper,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lead: Callable[[ZnodeCluster, str], None],
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    back_up(cluster.bus.path, tmp_path / "backup.db")
    lead(cluster, "u")
    before = dict(zookeeper.znodes)

    found = refusals(monkeypatch)
    with other_bus(cluster, tmp_path / "backup.db"):
        # So many that the old bus has other decisions at that place, and not only none.
        for number in range(200):
            cluster.ask("create_topic", topic=f"other-{number}", assignment={"0": [1, 2]})
        # It tries again, and neither ends nor leads.
        cluster.lead(lambda: len(found) > 1, nothing)
        with pytest.raises(OtherBusError, match="put back from a backup"):
            hand_back(cluster.root, CLUSTER_ID, PATIENT, cluster.bus)
    assert zookeeper.znodes == before

    # The present bus leads.
    lead_and_create(cluster, "v")
    assert cluster.is_there(STATE.format("u"))


def test_a_cluster_whose_bus_is_lost_is_taken_over_as_the_error_says(
    cluster: ZnodeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.put_topic("t", {0: [1, 2]})
    cluster.adopt()
    back_up(cluster.bus.path, tmp_path / "backup.db")
    lead_and_create(cluster, "u")
    found = refusals(monkeypatch)
    with other_bus(cluster, tmp_path / "backup.db"):
        cluster.lead(lambda: len(found) > 0, nothing)
    assert "remove /controller" in found[0]
    cluster.client.delete(znodes.CONTROLLER)
    cluster.put(znodes.CONTROLLER, {"version": 2, "brokerid": 1, "timestamp": "1"})
    with other_bus(cluster, tmp_path / "new.db"):
        cluster.adopt()
        lead_and_create(cluster, "v")
        assert {"t-0", "u-0", "v-0"} <= cluster.decided().keys()


def test_the_newest_decision_before_a_place_is_found_in_ever_longer_stretches() -> None:
    decisions = [Decided(seq, index, encode(replace(led(), seq=seq))) for seq, index in ((3, 0), (40, 0), (40, 1))]
    bus = cast(Bus, FewDecisions(*decisions))
    found = [newest_decision(bus, through) for through in (2, 3, 39, 40, 1_000)]
    assert [one and one.seq for one in found] == [None, 3, 3, 40, 40]


class FewDecisions:
    """A bus with a few decisions, or with none because retention has removed them."""

    def __init__(self, *decisions: Decided, is_trimmed: bool = False) -> None:
        self._decisions = list(decisions)
        self._is_trimmed = is_trimmed

    def bus_id(self) -> int:
        return 5

    def decisions(self, after: tuple[int, int], limit: int, *, passing_over: bool = False) -> list[Decided]:
        if self._is_trimmed and not passing_over:
            raise TrimmedError("gone")
        return [one for one in self._decisions if (one.seq, one.idx) > after][:limit]


def test_a_bus_is_refused_unless_it_has_the_decision_or_retention_has_removed_it() -> None:
    decision = led()
    note = text_of(5, decision)
    has_it = FewDecisions(Decided(decision.seq, 0, encode(decision)))
    check_has_written(cast(Bus, has_it), note)
    check_has_written(cast(Bus, FewDecisions(is_trimmed=True)), note)
    # An isrflow that noted nothing led, or the cluster was taken over from another bus.
    for other in (b"", text_of(6, decision)):
        check_has_written(cast(Bus, FewDecisions()), other)
    with pytest.raises(OtherBusError):
        check_has_written(cast(Bus, FewDecisions()), note)
    later = replace(decision, time_ms=decision.time_ms + 1)
    with pytest.raises(OtherBusError):
        check_has_written(cast(Bus, FewDecisions(Decided(later.seq, 0, encode(later)))), note)
    with pytest.raises(ZnodeError, match=znodes.WRITES):
        check_has_written(cast(Bus, has_it), b"{}")
