"""The level, raised to one that no release supports yet."""

import pytest

from state.decisions import Answer, LevelDecision, Rejected
from state.level import FIRST_LEVEL, NEWEST_LEVEL
from state.stored import codec
from tests.support.world import World

NEXT = NEWEST_LEVEL + 1


@pytest.fixture
def raised(monkeypatch: pytest.MonkeyPatch) -> World:
    """Return a world at the next level. Gateway 100 supported it, 101 did not and has been silent."""
    monkeypatch.setattr(codec, "NEWEST_LEVEL", NEXT)
    world = World()
    world.publish("controller_started", controller_id="c", controller_epoch=1, level=NEXT)
    for gateway, level in ((101, FIRST_LEVEL), (100, NEXT)):
        world.publish("gateway_started", gateway=gateway, incarnation="a", voters=(100, 101), level=level)
    world.register(1, level=NEXT)
    assert ask(world, "raise_level", level=NEXT) == "UNSUPPORTED_VERSION"
    world.tick(60_000)
    world.publish("gateway_heartbeat", gateway=100, incarnation="a", level=NEXT)
    world.tick()
    assert ask(world, "raise_level", level=NEXT, principal="User:admin") == "NONE"
    assert [(one.level, one.principal) for one in world.all(LevelDecision)] == [(NEXT, "User:admin")]
    return world


def ask(world: World, kind: str, **fields: object) -> str:
    world.publish(kind, request_id="r", **fields)
    [answer] = world.all(Answer)
    return answer.error


def test_the_level_rises_once_and_never_falls(raised: World) -> None:
    assert raised.state.cluster.level == NEXT
    assert ask(raised, "raise_level", level=NEXT) == "NONE"
    assert raised.all(LevelDecision) == []
    assert ask(raised, "raise_level", level=FIRST_LEVEL) == "INVALID_REQUEST"
    raised.publish("controller_started", controller_id="c", controller_epoch=2, level=FIRST_LEVEL)
    assert raised.state.cluster.level == NEXT


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("gateway_heartbeat", {"gateway": 101, "incarnation": "a"}),
        ("gateway_started", {"gateway": 101, "incarnation": "b", "voters": (101,)}),
        ("broker_register", {"broker": 2, "incarnation": "a", "level": FIRST_LEVEL}),
    ],
)
def test_a_process_of_the_former_release_is_refused(raised: World, kind: str, fields: dict[str, object]) -> None:
    before = raised.state
    assert ask(raised, kind, **fields) == "UNSUPPORTED_VERSION"
    [rejected] = raised.all(Rejected)
    assert (rejected.field, rejected.message) == (
        "level",
        f"the level is {NEXT}, and it supports {FIRST_LEVEL} at most",
    )
    assert (raised.state.cluster.brokers, raised.state.cluster.gateways) == (
        before.cluster.brokers,
        before.cluster.gateways,
    )


def test_a_real_broker_has_no_level(raised: World) -> None:
    assert ask(raised, "broker_register", broker=2, incarnation="a", behind_gateway=True) == "NONE"
