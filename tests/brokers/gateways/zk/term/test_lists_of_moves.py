"""Moves that a tool of Kafka before 2.4 lists in ZooKeeper: each is listed until it has ended, however that is."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import encode

from brokers.gateways.zk import znodes
from bus.clock import now_ms
from bus.image import view_of_image
from state.events import AlterReassignment, CreateTopic
from tests.brokers.gateways.zk.gateways import Gateways, gateways
from tests.support.waiting import wait_until

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}
TO_BROKER_3 = (3, 2)


@pytest.fixture
def led(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gateways]:
    """A gateway that leads brokers 1 to 4, none of which answers, and a topic of two partitions on the first two."""
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        for number in (1, 2, 3, 4):
            led.tree.put_broker(number)
        led.start(100)
        wait_until(lambda: all(led.state_of(number) == "active" for number in (1, 2, 3, 4)), "the brokers to serve")
        led.bus.publish([encode(CreateTopic(time_ms=now_ms(), topic="t", assignment={"0": (1, 2), "1": (1, 2)}))])
        wait_until(lambda: "/brokers/topics/t/partitions/1/state" in led.tree.znodes, "the topic to be written")
        yield led


def put_list(led: Gateways, moves: dict[int, tuple[int, ...]]) -> None:
    text = {
        "version": 1,
        "partitions": [{"topic": "t", "partition": number, "replicas": to} for number, to in moves.items()],
    }
    led.tree.put(znodes.REASSIGN_PARTITIONS, json.dumps(text).encode())


def listed(led: Gateways) -> dict[int, tuple[int, ...]]:
    """Return the moves that a tool finds under way."""
    held = led.tree.znodes.get(znodes.REASSIGN_PARTITIONS)
    moves = {} if held is None else znodes.reassignments_of(held.data)
    return {place.partition: to for place, to in moves.items()}


def partition(led: Gateways, number: int = 0) -> dict[str, Any]:
    held: list[dict[str, Any]] = view_of_image(led.bus.image())["partitions"]
    return next(one for one in held if one["partition"] == number)


@pytest.mark.parametrize(("other", "replicas"), [(None, (2, 1)), ((4, 1), (4, 1, 2))])
def test_a_move_that_a_request_cancels_or_replaces_is_not_asked_for_again(
    led: Gateways, other: tuple[int, ...] | None, replicas: tuple[int, ...]
) -> None:
    put_list(led, {0: TO_BROKER_3})
    wait_until(lambda: partition(led)["adding_replicas"] == (3,), "the move to begin")
    led.bus.publish([encode(AlterReassignment(time_ms=now_ms(), topic="t", partition=0, replicas=other))])
    wait_until(lambda: not listed(led), "the list to go")
    assert partition(led)["replicas"] == replicas
    assert len(led.events(AlterReassignment)) == 2


def test_a_move_that_was_under_way_when_its_list_was_found_can_be_cancelled(led: Gateways) -> None:
    led.bus.publish([encode(AlterReassignment(time_ms=now_ms(), topic="t", partition=0, replicas=TO_BROKER_3))])
    wait_until(lambda: partition(led)["adding_replicas"] == (3,), "the move to begin")
    put_list(led, {0: TO_BROKER_3, 1: (2, 1)})
    wait_until(lambda: listed(led) == {0: TO_BROKER_3}, "the list to be read")
    led.bus.publish([encode(AlterReassignment(time_ms=now_ms(), topic="t", partition=0, replicas=None))])
    wait_until(lambda: not listed(led), "the list to go")
    assert partition(led)["replicas"] == (2, 1)
    assert getattr(led.events(AlterReassignment)[-1], "replicas", ()) is None


def test_moves_that_have_ended_or_are_refused_leave_the_list_before_the_others(led: Gateways) -> None:
    put_list(led, {0: TO_BROKER_3, 1: (2, 1), 7: (1,)})
    wait_until(lambda: listed(led) == {0: TO_BROKER_3}, "the list to shorten")
    assert partition(led, 1)["replicas"] == (2, 1)
    assert partition(led)["adding_replicas"] == (3,)
    assert len(led.events(AlterReassignment)) == 3


def test_the_same_list_made_again_asks_for_the_same_moves(led: Gateways) -> None:
    for _ in range(2):
        put_list(led, {0: TO_BROKER_3})
        wait_until(lambda: partition(led)["adding_replicas"] == (3,), "the move to begin")
        led.bus.publish([encode(AlterReassignment(time_ms=now_ms(), topic="t", partition=0, replicas=None))])
        wait_until(lambda: not listed(led), "the list to go")
    assert len(led.events(AlterReassignment)) == 4
