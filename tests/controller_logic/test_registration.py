"""The process that may have a broker's id: behind a gateway the one with a valid session, else the last to register."""

import pytest

from state.broker import BrokerState
from tests.support.world import World

SESSION_MS = 9_000
DISK, OTHER_DISK = ["disk-one"], ["another"]


def claim(world: World, epoch: int) -> None:
    world.publish("controller_started", controller_id="c", controller_epoch=epoch)


def start_gateway(world: World, incarnation: str = "first") -> None:
    world.publish("gateway_started", gateway=100, incarnation=incarnation, voters=[100])


def gateway_beats(world: World, incarnation: str = "first", late_ms: int = 0) -> None:
    world.publish("gateway_heartbeat", gateway=100, incarnation=incarnation, late_ms=late_ms)


@pytest.fixture
def world() -> World:
    """Broker 1 behind the gateway that leads, and active."""
    world = World()
    claim(world, 1)
    start_gateway(world)
    world.join(1, behind_gateway=True, log_dirs=DISK)
    # A heartbeat counts at the tick that follows.
    world.tick()
    return world


def is_let_in(world: World, incarnation: str = "second", disk: list[str] = DISK, broker: int = 1) -> bool:
    """Register another process, and return whether it was accepted; a refused one changes nothing."""
    before = world.state
    world.register(broker, incarnation=incarnation, behind_gateway=True, log_dirs=disk)
    if world.error == "NONE":
        assert world.broker(broker).incarnation == incarnation
        return True
    assert world.error == "DUPLICATE_BROKER_REGISTRATION"
    assert world.state.cluster.brokers == before.cluster.brokers
    assert len(world.decisions) == 1, "it is answered, and nothing else"
    return False


def lose_connection(world: World, broker: int = 1) -> None:
    world.publish("broker_connection_lost", broker=broker, broker_epoch=world.broker(broker).broker_epoch)


def pass_time(world: World, ms: int) -> None:
    # A gateway's heartbeat counts from the tick before it.
    world.tick(ms)
    gateway_beats(world)
    world.tick()


def test_another_process_is_refused_while_the_session_is_valid(world: World) -> None:
    world.create("t", (1,))
    assert not is_let_in(world)
    assert not is_let_in(world, disk=OTHER_DISK)
    pass_time(world, SESSION_MS - 1)
    assert not is_let_in(world)
    assert world.partition("t").leader == 1


def test_another_process_registers_once_the_session_has_ended(world: World) -> None:
    pass_time(world, SESSION_MS)
    assert is_let_in(world, disk=OTHER_DISK)


@pytest.mark.parametrize("fenced", [False, True])
def test_a_lost_connection_admits_a_process_on_the_same_disk(world: World, fenced: bool) -> None:
    """The setting for sessions, broker.connection.lost.grace.ms, is -1 here and makes no difference."""
    world.beat(1, fence=fenced)
    lose_connection(world)
    assert world.broker(1).state == (BrokerState.fenced if fenced else BrokerState.active)
    assert not is_let_in(world, disk=OTHER_DISK)
    assert is_let_in(world)


def test_a_broker_that_is_heard_again_keeps_its_id(world: World) -> None:
    lose_connection(world)
    world.beat(1)
    assert not is_let_in(world)


def test_a_lost_connection_of_a_former_process_does_not_count(world: World) -> None:
    former = world.broker(1).broker_epoch
    lose_connection(world)
    assert is_let_in(world)
    world.beat(1)
    world.publish("broker_connection_lost", broker=1, broker_epoch=former)
    assert not is_let_in(world, "third")


def test_a_cleanly_stopped_broker_frees_its_id(world: World) -> None:
    world.join(2, behind_gateway=True, log_dirs=["disk-two"])
    world.beat(1, shutdown=True)
    assert not is_let_in(world, disk=OTHER_DISK), "it is on its way out, and may lead yet"
    world.beat(1, fence=True)
    assert is_let_in(world, disk=OTHER_DISK)


def test_a_fenced_broker_that_is_heard_keeps_its_id(world: World) -> None:
    """It is starting, and recovers its logs."""
    world.beat(1, fence=True)
    world.tick()
    pass_time(world, SESSION_MS - 1)
    assert not is_let_in(world)
    pass_time(world, 1)
    assert is_let_in(world)


def test_the_first_heartbeat_begins_the_session(world: World) -> None:
    world.register(2, behind_gateway=True, log_dirs=["disk-two"])
    assert is_let_in(world, "second", ["disk-two"], broker=2)
    world.beat(2, fence=True)
    assert not is_let_in(world, "third", ["disk-two"], broker=2)


def test_the_same_process_may_amend_its_registration(world: World) -> None:
    epoch = world.broker(1).broker_epoch
    world.register(1, rack="r", behind_gateway=True, log_dirs=DISK)
    assert (world.error, world.broker(1).rack, world.broker(1).broker_epoch) == ("NONE", "r", epoch)
    assert world.broker(1).is_active


@pytest.mark.parametrize("fenced", [False, True])
def test_a_restart_of_the_gateway_forgets_no_broker(world: World, fenced: bool) -> None:
    world.beat(1, fence=fenced)
    world.now += 2 * SESSION_MS
    start_gateway(world, "second")
    assert not is_let_in(world, disk=OTHER_DISK)
    gateway_beats(world, "second")
    assert not is_let_in(world, disk=OTHER_DISK)


@pytest.mark.parametrize("fenced", [False, True])
def test_neither_another_controller_nor_a_stall_forgets_a_broker(world: World, fenced: bool) -> None:
    world.beat(1, fence=fenced)
    world.now += SESSION_MS - 1
    gateway_beats(world, late_ms=5_000)
    world.publish("sessions_extended", by_ms=2_000)
    world.now += 6_000
    gateway_beats(world)
    assert not is_let_in(world)
    claim(world, 2)
    world.now += SESSION_MS - 1
    gateway_beats(world)
    assert not is_let_in(world)


def test_a_directory_of_another_broker_is_refused(world: World) -> None:
    world.register(2, behind_gateway=True, log_dirs=["disk-two", *DISK])
    assert world.error == "INVALID_REGISTRATION"
    assert 2 not in world.state.cluster.brokers
    world.register(2, behind_gateway=True, log_dirs=["disk-two"])
    world.register(2, behind_gateway=True, log_dirs=DISK)
    assert world.error == "INVALID_REGISTRATION", "nor may it go there later"
    world.publish("broker_unregister", broker=1)
    world.register(2, behind_gateway=True, log_dirs=DISK)
    assert world.error == "NONE"


def test_brokers_without_a_gateway_bounce_and_name_their_directories_as_they_like(world: World) -> None:
    world.join(3, log_dirs=DISK)
    world.join(4, log_dirs=DISK)
    world.register(3, incarnation="second", log_dirs=OTHER_DISK)
    assert world.error == "NONE"
    assert world.broker(3).incarnation == "second"


def test_a_broker_without_a_gateway_does_not_take_an_id_from_behind_one(world: World) -> None:
    world.register(1, incarnation="second", log_dirs=DISK)
    assert world.error == "DUPLICATE_BROKER_REGISTRATION"


@pytest.mark.parametrize(("gateway_is_kraft", "error"), [(True, "NONE"), (False, "INVALID_REGISTRATION")])
def test_several_directories_need_a_metadata_log(gateway_is_kraft: bool, error: str) -> None:
    world = World()
    claim(world, 1)
    world.publish("gateway_started", gateway=100, incarnation="first", voters=[100], is_kraft=gateway_is_kraft)
    world.register(1, behind_gateway=True, log_dirs=["one"])
    assert world.error == "NONE"
    world.register(2, behind_gateway=True, log_dirs=["two", "three"])
    assert (world.error, set(world.state.cluster.brokers)) == (error, {1, 2} if error == "NONE" else {1})


@pytest.mark.parametrize(("disk", "let_in"), [(DISK, True), ([*DISK, "new"], True), (OTHER_DISK, False)])
def test_a_process_with_more_directories_is_the_successor(disk: list[str], let_in: bool) -> None:
    world = World()
    claim(world, 1)
    world.publish("gateway_started", gateway=100, incarnation="first", voters=[100], is_kraft=True)
    world.join(1, behind_gateway=True, log_dirs=DISK)
    lose_connection(world)
    assert is_let_in(world, disk=disk) == let_in


def test_a_process_that_names_no_directory_is_the_successor_of_one_that_named_none(world: World) -> None:
    claim(world, 2)
    world.join(2, behind_gateway=True, log_dirs=[])
    lose_connection(world, 2)
    assert is_let_in(world, broker=2, disk=[])


def test_brokers_without_gateways_may_name_their_directories_alike(world: World) -> None:
    """Theirs are paths, each on a machine of its own."""
    world.join(2, log_dirs=["/data"])
    assert is_let_in(world, broker=3, disk=["/data"])
    # Broker 3 leaves its gateway. What behind one would be an id is a path now.
    world.beat(3)
    world.beat(3, shutdown=True)
    world.beat(3, fence=True)
    world.register(3, incarnation="third", log_dirs=DISK)
    assert (world.error, world.broker(3).incarnation) == ("NONE", "third")
