"""What ZooKeeper gets to hold: in which order, in which version, and what is left alone."""

import json
from typing import Any

import pytest

from brokers.gateways.zk import znodes
from brokers.gateways.zk.cluster_view import ClusterView, Place
from brokers.gateways.zk.mirror import Mirror, MirrorError, changes_in
from brokers.gateways.zk.shared_mirror import SharedMirror
from brokers.gateways.zk.stored import StoredState, StoredTopic
from brokers.gateways.zk.transactions import Set, Write
from state.decisions import AnyDecision
from state.reason import Reason
from tests.brokers.gateways.zk.decided import ID, OTHER_ID, T0, led, topic
from tests.brokers.gateways.zk.tree import Tree


class Held(Tree):
    """The znodes that writes about ``t`` lead to."""

    def __init__(self, mirror: Mirror | None = None) -> None:
        super().__init__()
        self.view = ClusterView()
        self.mirror = mirror or Mirror()

    def hear(self, *decisions: AnyDecision) -> list[Write]:
        for decision in decisions:
            self.view.apply(decision)
        writes = list(self.mirror.writes(self.view, changes_in(decisions) or {"t": None}, 7))
        self.make(writes)
        return writes

    @property
    def version(self) -> int:
        return self.znodes["/brokers/topics/t/partitions/0/state"][1]


def test_a_new_topic_has_settings_then_an_assignment_then_states() -> None:
    held = Held()
    writes = held.hear(led(), topic(a="1"))
    assert [one.path for one in writes] == [
        "/config/topics/t",
        "/brokers/topics/t",
        "/brokers/topics/t/partitions",
        "/brokers/topics/t/partitions/0",
        "/brokers/topics/t/partitions/0/state",
    ]
    assert held.hear() == []


def test_the_version_of_a_state_is_the_partition_epoch() -> None:
    held = Held()
    held.hear(led(), topic())
    held.hear(led(2, 1, 1))
    assert held.version == 1
    # Decisions that were never written one by one count all the same.
    held.hear(led(3, 2, 5))
    assert held.version == 5
    state = znodes.state_of("", held.znodes["/brokers/topics/t/partitions/0/state"][0])
    assert (state.leader, state.leader_epoch, state.controller_epoch) == (3, 2, 7)


def test_only_partitions_that_changed_are_compared() -> None:
    held = Held()
    held.hear(*[led(partition=number) for number in range(3)], topic())
    # Nothing says that this one changed, so it waits for the next decision about it, or the next term.
    held.view.apply(led(2, 1, 1, partition=1))
    assert [one.path for one in held.hear(led(2, 1, 1, partition=2))] == ["/brokers/topics/t/partitions/2/state"]
    assert [one.path for one in held.hear()] == ["/brokers/topics/t/partitions/1/state"]


def test_a_topic_is_written_again_when_replicas_change() -> None:
    held = Held()
    held.hear(led(), led(partition=1), topic())
    moving = led(1, 1, 1, replicas=(1, 2, 3, 4), adding_replicas=(4,))
    assert [one.path for one in held.hear(moving)] == ["/brokers/topics/t", "/brokers/topics/t/partitions/0/state"]
    written = znodes.topic_of("", held.znodes["/brokers/topics/t"][0])
    assert (written.partitions, written.adding_replicas) == ({0: (1, 2, 3, 4), 1: (1, 2, 3)}, {0: (4,)})
    assert held.hear(led(partition=2))[0].path == "/brokers/topics/t"


def test_a_gateway_that_starts_writes_only_what_changed_meanwhile() -> None:
    held = Held()
    held.hear(led(), led(partition=1), topic())
    again = Mirror()
    again.found("t", held.znodes["/brokers/topics/t"][0], {}, {0: 0, 1: 0})
    held.mirror = again
    writes = held.hear(led(2, 1, 1, partition=1))
    assert [one.path for one in writes] == ["/brokers/topics/t/partitions/1/state"]


def test_what_another_controller_wrote_is_not_overwritten() -> None:
    held = Held()
    held.hear(led(), topic())
    held.mirror.found("t", held.znodes["/brokers/topics/t"][0], {}, {0: 4})
    with pytest.raises(MirrorError, match="t/partitions/0/state is at version 4, and the engine decided 1"):
        held.hear(led(2, 1, 1))


def test_changed_settings_come_with_a_note() -> None:
    held = Held()
    held.hear(led(), topic(a="1"))
    writes = held.hear(topic(a="2"))
    assert [one.path for one in writes] == ["/config/topics/t", "/config/changes/config_change_"]
    held.mirror.config_found("t", {"a": "3"})
    assert held.hear(topic(a="3")) == []


def test_a_deleted_topic_goes_once_its_logs_are_gone() -> None:
    held = Held()
    held.hear(led(), topic())
    assert held.hear(led(-1, 1, 1, reason=Reason.TOPIC_DELETED), topic("deleting")) == []
    held.hear(topic("deleted"))
    assert held.znodes == {}


def test_a_topic_of_the_same_name_replaces_the_former_one() -> None:
    held = Held()
    held.hear(led(1, 4, 9), topic())
    held.hear(topic("deleted"), led(topic_id=OTHER_ID), topic(topic_id=OTHER_ID))
    assert held.version == 0
    assert znodes.topic_of("", held.znodes["/brokers/topics/t"][0]).topic_id == OTHER_ID


def test_a_topic_that_a_broker_wrote_is_a_stranger_until_the_engine_decides() -> None:
    held = Held()
    text = b'{"version":3,"partitions":{"0":[1,100]},"topic_id":"%s"}' % ID.encode()
    held.znodes |= {"/brokers/topics/t": (text, 0), "/config/topics/t": (b"{}", 0)}
    held.mirror.found("t", text, {}, {})
    assert held.mirror.strangers(held.view) == ["t"]
    held.hear(led(), topic())
    assert held.mirror.strangers(held.view) == []
    assert znodes.topic_of("", held.znodes["/brokers/topics/t"][0]).partitions == {0: (1, 2, 3)}
    assert held.version == 0


def written_by_leader(held: Held, **fields: Any) -> StoredState:
    """Write the state of the partition as its leader does, and return it as it is read then."""
    path = "/brokers/topics/t/partitions/0/state"
    state = {"leader": 1, "leader_epoch": 0, "controller_epoch": 7, "isr": [1, 2, 3]} | fields
    held.make([Set(path, json.dumps(state).encode(), held.version)])
    return StoredState(znodes.state_of(path, held.znodes[path][0]), held.version)


def test_where_leaders_write_too_each_write_is_at_the_version_that_is_known() -> None:
    mirror = SharedMirror()
    held = Held(mirror)
    held.hear(led(), topic())
    assert (held.version, held.view.version(led())) == (0, 0)
    # Decisions that were skipped need no write of their own.
    held.hear(led(leader=2, leader_epoch=1, partition_epoch=1), led(leader=3, leader_epoch=2, partition_epoch=2))
    assert (held.version, held.view.version(led(partition_epoch=2))) == (1, 1)
    stored = written_by_leader(held, leader=3, leader_epoch=2, isr=[3])
    assert mirror.is_news(T0, stored)
    mirror.held.add(T0)
    assert held.hear(led(leader=3, leader_epoch=2, partition_epoch=3, isr=(3,))) == []
    mirror.agreed(held.view, T0, stored.version, 3)
    mirror.held.clear()
    assert (held.hear(), mirror.is_news(T0, stored), held.view.version(led(partition_epoch=3))) == ([], False, 2)
    held.hear(led(leader=2, leader_epoch=3, partition_epoch=4))
    assert held.version == 3


def test_what_a_leader_wrote_is_told_from_what_the_gateway_wrote() -> None:
    first = Held(SharedMirror())
    first.hear(led(), topic())
    texts = {path: data for path, (data, _) in first.znodes.items()}

    def found(state: StoredState | None = None) -> dict[Place, StoredState]:
        path = "/brokers/topics/t/partitions/0/state"
        stored = state or StoredState(znodes.state_of(path, texts[path]), first.version)
        mirror = SharedMirror()
        mirror.found("t", texts["/brokers/topics/t"], {}, {0: stored.version})
        first.view.apply(decided)
        return mirror.begin_with(first.view, StoredTopic("t", texts["/brokers/topics/t"], {}, {0: stored}))

    # The gateway wrote it, and must write again by itself.
    decided = led(leader=2, leader_epoch=1, partition_epoch=1)
    assert found() == {}
    # The leader wrote it, and the engine knows that already, or does not know it yet.
    assert found(written_by_leader(first, leader=2, leader_epoch=1, isr=[3, 2, 1])) == {}
    assert found(state := written_by_leader(first, isr=[1])) == {T0: state}
