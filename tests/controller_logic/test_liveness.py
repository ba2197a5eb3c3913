"""Registration, heartbeats and sessions."""

import pytest

from state.broker import BrokerState
from state.decisions import Answer, BrokerDecision, Rejected
from tests.support.world import World, claimed


@pytest.fixture
def trio() -> World:
    """Brokers 1, 2 and 3, and topic t with one partition on them, led by 1."""
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    return world


def test_a_broker_registers_fenced_in_the_epoch_of_its_event() -> None:
    world = World()
    world.publish("tick")
    world.register(7, rack="r1", listeners=[{"name": "PLAINTEXT", "host": "h", "port": 9092}], request_id="q")
    assert world.kinds == "broker,answer"
    said = world.one(BrokerDecision)
    assert (said.broker, said.broker_epoch, said.state, said.rack) == (7, 2, "fenced", "r1")
    assert (world.one(Answer).request_id, world.one(Answer).broker_epoch) == ("q", 2)


def test_a_heartbeat_without_changes_decides_nothing(trio: World) -> None:
    assert trio.beat(1) == []


def test_a_heartbeat_without_changes_is_answered_if_it_asks(trio: World) -> None:
    trio.beat(1, request_id=4)
    assert (trio.kinds, trio.error, trio.one(Answer).request_id) == ("answer", "NONE", 4)
    assert (trio.one(Answer).broker, trio.one(Answer).broker_epoch) == (1, trio.broker(1).broker_epoch)


def test_the_answer_to_a_controlled_shutdown_names_the_broker_and_its_epoch(trio: World) -> None:
    epoch = trio.broker(1).broker_epoch
    trio.publish("controlled_shutdown", broker=1, broker_epoch=epoch)
    assert (trio.one(Answer).broker, trio.one(Answer).broker_epoch) == (1, epoch)
    assert (trio.one(BrokerDecision).broker, trio.one(BrokerDecision).broker_epoch) == (1, epoch)


def test_a_heartbeat_loads_no_topic(trio: World, monkeypatch: pytest.MonkeyPatch) -> None:
    trio.is_checked = False
    for reading in ("get", "names"):
        monkeypatch.setattr(trio.state.topics, reading, lambda *_: pytest.fail("a topic was loaded"))
    trio.beat(1)


def test_the_same_incarnation_keeps_epoch_and_state(trio: World) -> None:
    epoch = trio.broker(1).broker_epoch
    listeners = [{"name": "PLAINTEXT", "host": "h", "port": 9, "protocol": "PLAINTEXT"}]
    more = {"features": [{"name": "metadata.version", "min_version": 1, "max_version": 25}], "behind_gateway": True}
    trio.register(1, rack="moved", listeners=listeners, log_dirs=["another"], **more)
    assert (trio.broker(1).features[0].name, trio.broker(1).is_kraft) == ("metadata.version", True)
    assert trio.one(Answer).broker_epoch == epoch
    assert (trio.broker(1).listeners[0].port, trio.broker(1).log_dirs) == (9, ("another",))
    assert (trio.broker(1).state, trio.broker(1).rack) == (BrokerState.active, "moved")
    assert trio.one(BrokerDecision).state == "active"


def test_a_heartbeat_counts_from_the_engines_clock_not_its_own(trio: World) -> None:
    trio.tick(5_000)
    late = trio.now
    trio.now = 1
    for broker in (1, 2, 3):
        trio.beat(broker)
    trio.now = late + 8_999
    assert trio.publish("tick") == []


@pytest.mark.parametrize("kind", ["broker_heartbeat", "broker_connection_lost", "controlled_shutdown"])
def test_an_event_of_an_unknown_broker_is_rejected_with_its_text(trio: World, kind: str) -> None:
    trio.publish(kind, broker=9, broker_epoch=1, want_fence=False, want_shutdown=False)
    rejected = trio.one(Rejected)
    assert (rejected.field, rejected.reason) == ("broker", "UNKNOWN_BROKER")
    assert f'"kind":"{kind}"' in rejected.raw
    assert trio.kinds == "rejected"


def test_an_unknown_broker_that_asks_is_answered_too(trio: World) -> None:
    trio.publish("broker_unregister", broker=9, request_id=1)
    assert (trio.kinds, trio.error) == ("answer,rejected", "BROKER_ID_NOT_REGISTERED")


@pytest.mark.parametrize("kind", ["broker_heartbeat", "broker_connection_lost", "controlled_shutdown"])
def test_an_old_incarnation_is_refused_and_changes_nothing(trio: World, kind: str) -> None:
    before = trio.state.cluster.brokers
    trio.publish(kind, broker=1, broker_epoch=0, want_fence=True, want_shutdown=False)
    assert (trio.kinds, trio.error) == ("answer", "STALE_BROKER_EPOCH")
    assert (trio.one(Answer).broker, trio.one(Answer).broker_epoch) == (1, trio.broker(1).broker_epoch)
    assert trio.state.cluster.brokers == before


def test_an_unregistered_broker_gets_no_replica(trio: World) -> None:
    trio.publish("broker_unregister", broker=1)
    trio.publish("create_topic", topic="u", partitions=1, replication_factor=3)
    assert trio.error == "INVALID_REPLICATION_FACTOR"


def test_a_lost_connection_ends_the_session_once_the_grace_is_set_to_zero(trio: World) -> None:
    trio.publish("broker_connection_lost", broker=1, broker_epoch=trio.broker(1).broker_epoch)
    trio.publish("alter_config", entity="cluster", config={"broker.connection.lost.grace.ms": 0})
    assert trio.all(BrokerDecision) == []
    trio.tick()
    assert [(d.broker, d.reason) for d in trio.all(BrokerDecision)] == [(1, "BROKER_CONNECTION_LOST")]


@pytest.fixture
def graceful() -> World:
    """Broker 1 has just lost its connection and has a second of grace; broker 2 is connected."""
    world = World(1, 2, broker_connection_lost_grace_ms="1000")
    world.publish("broker_connection_lost", broker=1, broker_epoch=world.broker(1).broker_epoch)
    assert world.decisions == []
    return world


def fenced(world: World) -> list[tuple[int, str]]:
    return [(d.broker, d.reason) for d in world.all(BrokerDecision)]


def test_a_session_is_the_least_silence_before_a_fence() -> None:
    """A heartbeat just before a tick was counted at the tick before that one."""
    world = claimed(1)
    world.entered_ms = world.now
    world.tick(500)
    world.beat(1)
    world.tick(500)
    world.tick(8_999)
    assert fenced(world) == [], "it may have been heard just before the tick"
    world.tick(1)
    assert fenced(world) == [(1, "BROKER_SESSION_EXPIRED")]


def test_a_heartbeat_after_which_no_tick_comes_for_long_counts_at_that_tick() -> None:
    """Nobody knows when it came. An engine that is held up for so long extends sessions anyway."""
    world = claimed(1)
    world.entered_ms = world.now
    world.tick(500)
    world.beat(1)
    world.tick(20_000)
    assert fenced(world) == []
    world.tick(8_999)
    assert fenced(world) == []
    world.tick(1)
    assert fenced(world) == [(1, "BROKER_SESSION_EXPIRED")]


def test_a_claim_counts_what_came_before_it() -> None:
    world = claimed(1)
    world.tick(500)
    world.beat(1)
    world.now += 300
    world.publish("controller_started", controller_id="next", controller_epoch=2)
    world.tick(8_999)
    assert fenced(world) == []
    world.tick(1)
    assert fenced(world) == [(1, "BROKER_SESSION_EXPIRED")]


@pytest.mark.parametrize(("time_ms", "fenced_ms"), [(1_499, 10_499), (99_000, 19_000)])
def test_without_a_bus_a_heartbeat_counts_at_its_own_time_but_not_after_the_tick(time_ms: int, fenced_ms: int) -> None:
    world = claimed(1)
    world.publish("broker_heartbeat", broker=1, broker_epoch=2, want_fence=False, want_shutdown=False, time_ms=time_ms)
    world.now = 10_000
    world.tick()
    world.now = fenced_ms - 1
    world.tick()
    assert fenced(world) == []
    world.tick(1)
    assert fenced(world) == [(1, "BROKER_SESSION_EXPIRED")]


def test_the_grace_begins_with_the_first_report_of_a_lost_connection() -> None:
    world = claimed(1, 2)
    world.entered_ms = world.now
    world.publish("alter_config", entity="cluster", config={"broker.connection.lost.grace.ms": 1_000})
    began_ms = world.now
    while not fenced(world):
        if world.now - began_ms <= 600:
            world.publish("broker_connection_lost", broker=1, broker_epoch=world.broker(1).broker_epoch)
        world.tick(200)
    assert world.now - began_ms == 1_200


def test_an_engine_delay_extends_the_grace(graceful: World) -> None:
    graceful.now += 1_500
    graceful.publish("sessions_extended", by_ms=1_000)
    graceful.tick(499)
    assert fenced(graceful) == []
    graceful.tick(1)
    assert fenced(graceful) == [(1, "BROKER_CONNECTION_LOST")]


def test_grace_does_not_begin_in_the_future(graceful: World) -> None:
    graceful.publish("sessions_extended", by_ms=60_000)
    graceful.tick(1_000)
    assert fenced(graceful) == [(1, "BROKER_CONNECTION_LOST")]


def test_a_new_controller_forgets_lost_connections(graceful: World) -> None:
    graceful.publish("controller_started", controller_id="c", controller_epoch=1)
    assert graceful.tick(8_999) == []


def test_offline_log_dirs_of_a_heartbeat_are_not_stored(trio: World) -> None:
    trio.beat(1, offline_log_dirs=["d"])
    assert trio.broker(1).offline_log_dirs == ()
