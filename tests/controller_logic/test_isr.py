"""The fences before an ISR change, and what an accepted one does."""

from typing import Any

import pytest

from state.decisions import Answer, LeaderAndIsr
from tests.support.world import World


@pytest.fixture
def trio() -> World:
    """Topic t on 1, 2, 3, led by 1 in leader epoch 1 (3 went, and came back, out of sync)."""
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    world.fence(3)
    world.beat(3)
    assert world.line("t") == "Online leader=1 epoch=1/1 isr=1,2"
    return world


def test_a_shrink_raises_the_partition_epoch_only(trio: World) -> None:
    trio.alter_isr("t", (1,), request_id="q")
    assert trio.line("t") == "Online leader=1 epoch=1/2 isr=1"
    assert trio.said == "ISR_SHRUNK to 1,2,3"
    answer = trio.one(Answer)
    assert (answer.error, answer.request_id) == ("NONE", "q")
    assert (answer.leader, answer.leader_epoch, answer.isr, answer.partition_epoch) == (1, 1, (1,), 2)


def test_an_expansion_keeps_the_order_that_the_leader_gave(trio: World) -> None:
    trio.alter_isr("t", (3, 1, 2))
    assert trio.line("t") == "Online leader=1 epoch=1/2 isr=3,1,2"
    assert trio.said == "ISR_EXPANDED to 1,2,3"


def test_one_in_and_one_out(trio: World) -> None:
    trio.alter_isr("t", (1, 3))
    assert trio.said == "ISR_ALTERED to 1,2,3"


@pytest.mark.parametrize("isr", [(1, 2), (2, 1)])
def test_what_is_committed_already_changes_nothing(trio: World, isr: tuple[int, ...]) -> None:
    trio.alter_isr("t", isr)
    assert (trio.kinds, trio.error) == ("answer", "NONE")
    assert trio.line("t") == "Online leader=1 epoch=1/1 isr=1,2"


def test_a_copy_of_an_accepted_request_is_not_accepted_again(trio: World) -> None:
    trio.alter_isr("t", (1,))
    trio.alter_isr("t", (1,), partition_epoch=1)
    assert (trio.kinds, trio.error) == ("answer", "INVALID_UPDATE_VERSION")


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic": "nowhere"}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"partition": 1}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"broker_epoch": 0}, "STALE_BROKER_EPOCH"),
        ({"leader_epoch": 0}, "FENCED_LEADER_EPOCH"),
        ({"leader_epoch": 2}, "NOT_CONTROLLER"),
        ({"broker": 2}, "INVALID_REQUEST"),
        ({"partition_epoch": 0}, "INVALID_UPDATE_VERSION"),
        ({"partition_epoch": 2}, "NOT_CONTROLLER"),
        ({"isr": []}, "INVALID_REQUEST"),
        ({"isr": [1, 1]}, "INVALID_REQUEST"),
        ({"isr": [1, 4]}, "INVALID_REQUEST"),
        ({"isr": [2]}, "INVALID_REQUEST"),
        ({"isr_epochs": [-1]}, "INVALID_REQUEST"),
        ({"leader_recovery_state": "RECOVERING", "isr": [1]}, "INVALID_REQUEST"),
        ({"isr_epochs": [-1, 99]}, "INELIGIBLE_REPLICA"),
    ],
)
def test_each_fence_holds_alone(trio: World, fields: dict[str, Any], error: str) -> None:
    before = trio.line("t")
    trio.alter_isr("t", (1, 3), **fields)
    assert (trio.kinds, trio.error) == ("answer", error)
    assert trio.line("t") == before


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"topic": "nowhere", "broker_epoch": 0}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"broker_epoch": 0, "leader_epoch": 0}, "STALE_BROKER_EPOCH"),
        ({"leader_epoch": 0, "broker": 2, "partition_epoch": 0}, "FENCED_LEADER_EPOCH"),
        ({"broker": 2, "partition_epoch": 0}, "INVALID_REQUEST"),
        ({"partition_epoch": 0, "isr": []}, "INVALID_UPDATE_VERSION"),
    ],
)
def test_fences_stand_in_order(trio: World, fields: dict[str, Any], error: str) -> None:
    trio.alter_isr("t", (1, 3), **fields)
    assert trio.error == error


def test_a_refusal_tells_what_is_committed(trio: World) -> None:
    trio.alter_isr("t", (1, 3), partition_epoch=0)
    answer = trio.one(Answer)
    assert (answer.topic, answer.partition, answer.leader, answer.leader_epoch) == ("t", 0, 1, 1)
    assert (answer.isr, answer.partition_epoch) == ((1, 2), 1)


def test_an_unknown_sender_is_rejected(trio: World) -> None:
    trio.alter_isr("t", (1,), broker=9)
    assert trio.kinds == "rejected"


def test_a_fenced_replica_does_not_join(trio: World) -> None:
    trio.fence(3)
    trio.alter_isr("t", (1, 2, 3))
    assert trio.error == "INELIGIBLE_REPLICA"


def test_a_replica_that_shuts_down_does_not_join(trio: World) -> None:
    trio.beat(3, shutdown=True)
    trio.alter_isr("t", (1, 2, 3))
    assert trio.error == "INELIGIBLE_REPLICA"


def test_a_replica_that_was_started_anew_does_not_join_in_its_old_epoch(trio: World) -> None:
    old = trio.broker(3).broker_epoch
    trio.register(3, "second")
    trio.beat(3)
    epochs = [-1, -1, old]
    trio.alter_isr("t", (1, 2, 3), isr_epochs=epochs)
    assert trio.error == "INELIGIBLE_REPLICA"
    epochs[2] = trio.broker(3).broker_epoch
    trio.alter_isr("t", (1, 2, 3), isr_epochs=epochs)
    assert trio.error == "NONE"


def test_a_replica_without_its_log_does_not_join(trio: World) -> None:
    where = {"topic": "t", "partition": 0, "broker": 3, "broker_epoch": trio.broker(3).broker_epoch}
    trio.publish("replica_report", **where, leader_epoch=1, outcome="offline")
    trio.alter_isr("t", (1, 2, 3))
    assert trio.error == "INELIGIBLE_REPLICA"


def test_a_replica_known_to_be_behind_the_high_watermark_does_not_join(trio: World) -> None:
    trio.offsets("t", b1=10, b2=10, b3=9)
    trio.tick()
    trio.alter_isr("t", (1, 2, 3))
    assert trio.error == "INELIGIBLE_REPLICA"
    trio.offsets("t", b3=10)
    trio.alter_isr("t", (1, 2, 3))
    assert trio.error == "NONE"


def test_a_member_is_not_asked_again_how_far_it_is(trio: World) -> None:
    trio.alter_isr("t", (1, 2, 3))
    trio.offsets("t", b1=10, b2=10, b3=10)
    trio.tick()
    trio.offsets("t", b2=9)
    trio.alter_isr("t", (1, 2))
    assert trio.error == "NONE"


def test_a_replica_whose_end_is_of_an_older_epoch_is_believed(trio: World) -> None:
    trio.offsets("t", b3=1)
    trio.fence(2)
    trio.offsets("t", b1=10)
    trio.tick()
    trio.alter_isr("t", (1, 3))
    assert trio.error == "NONE"


@pytest.fixture
def recovering() -> World:
    """Topic t led by 2 in leader epoch 1 after an unclean election, with 3 out of sync."""
    world = World(1, 2, 3, unclean_leader_election_enable="true")
    world.create("t", (1, 2, 3))
    world.alter_isr("t", (1,))
    world.fence(1)
    assert world.line("t") == "Online leader=2 epoch=1/2 isr=2 recovering"
    return world


@pytest.mark.parametrize("state", ["RECOVERED", 0, None])
def test_a_leader_that_has_recovered_says_so(recovering: World, state: str | int | None) -> None:
    recovering.alter_isr("t", (2, 3), leader_recovery_state=state)
    assert recovering.line("t") == "Online leader=2 epoch=1/3 isr=2,3"
    assert recovering.one(LeaderAndIsr).reason == "LEADER_RECOVERED"


def test_recovery_with_fewer_in_sync_is_recovery(recovering: World) -> None:
    recovering.alter_isr("t", (2, 3))
    recovering.alter_isr("t", (2,))
    assert recovering.one(LeaderAndIsr).reason == "ISR_SHRUNK"


def test_recovery_alone_is_a_change(recovering: World) -> None:
    recovering.alter_isr("t", (2,), leader_recovery_state="RECOVERED")
    assert recovering.line("t") == "Online leader=2 epoch=1/3 isr=2"
    assert recovering.said == "LEADER_RECOVERED to 2,3"


def test_what_an_unclean_election_lost_holds_nobody_back() -> None:
    world = World(1, 2, 3, unclean_leader_election_enable="true")
    world.create("t", (1, 2, 3))
    world.alter_isr("t", (1,))
    world.offsets("t", b1=10)
    world.tick()
    world.fence(1)
    world.offsets("t", b2=4, b3=4)
    world.alter_isr("t", (2, 3))
    assert (world.partition("t").high_watermark, world.error) == (10, "NONE")


def test_a_leader_that_recovers_stays_alone(recovering: World) -> None:
    recovering.alter_isr("t", (2, 3), leader_recovery_state="RECOVERING")
    assert recovering.error == "INVALID_REQUEST"
    recovering.alter_isr("t", (2,), leader_recovery_state=1)
    assert (recovering.kinds, recovering.error) == ("answer", "NONE")
