"""Elections by logs, once no replica is in sync or eligible."""

import pytest

from controller_logic.step import step
from state.decisions import Answer, LeaderAndIsr
from state.event_text import decode
from state.events import AlterConfig, GatewayStarted, Logged
from tests.controller_logic.test_replica_log import DIRS, all_down, cluster, crashed, report
from tests.support.world import World


def crashed_out(strategy: str | None) -> World:
    """Crash 3, 1 and 2, of which only 1 and 2 had every committed record. None of them serves yet."""
    world = cluster(**({} if strategy is None else {"unclean.recovery.strategy": strategy}))
    all_down(world)
    for broker in (3, 1, 2):
        crashed(world, broker)
    held = world.partition("t")
    assert (held.isr, held.elr, held.former_members, held.last_known_elr) == ((), (), (1, 2), (1,))
    return world


def told(world: World) -> tuple[int, bool, str, object]:
    one = world.one(LeaderAndIsr)
    return one.leader, one.unclean, one.reason, one.compared_logs


def test_balanced_waits_for_all_crashed_members_and_elects_the_most_complete_log() -> None:
    world = crashed_out("Balanced")
    report(world, 1, log_end_offset=7)
    world.beat(1)
    assert world.partition("t").leader == -1, "the last known leader is not elected unseen"
    report(world, 2, log_end_offset=8)
    assert world.partition("t").leader == -1, "it has the most complete log, and does not serve yet"
    world.beat(2)
    assert told(world) == (2, True, "LOG_ELECTION", {1: (0, 7), 2: (0, 8)})
    assert world.partition("t").leader_recovery_state.name == "RECOVERING"


def test_a_log_that_ends_in_a_later_leader_epoch_is_more_complete_than_a_longer_one() -> None:
    world = crashed_out("Balanced")
    report(world, 1, last_written_epoch=0, log_end_offset=9)
    report(world, 2, last_written_epoch=1, log_end_offset=8)
    world.beat(1)
    world.beat(2)
    assert told(world)[0] == 2


def test_the_first_assigned_one_of_equal_logs_leads() -> None:
    world = crashed_out("Balanced")
    report(world, 2, log_end_offset=8)
    report(world, 1, log_end_offset=8)
    world.beat(2)
    assert world.partition("t").leader == -1
    world.beat(1)
    assert told(world)[0] == 1


def test_balanced_elects_among_the_logs_that_are_there_when_it_has_waited_long_enough() -> None:
    world = crashed_out("Balanced")
    report(world, 3, log_end_offset=5)
    world.beat(3)
    world.now += 299_000
    world.beat(3)
    world.tick()
    assert world.all(LeaderAndIsr) == []
    world.now += 1_000
    world.tick()
    assert told(world) == (3, True, "LOG_ELECTION", {3: (0, 5)})
    assert world.state.cluster.recoveries_due == ()


def test_balanced_does_not_wait_for_an_unregistered_broker() -> None:
    world = crashed_out("Balanced")
    report(world, 1, log_end_offset=7)
    world.beat(1)
    assert world.partition("t").leader == -1
    world.publish("broker_unregister", broker=2)
    assert told(world)[0] == 1


def test_the_report_of_a_former_process_is_not_compared() -> None:
    world = crashed_out("Balanced")
    report(world, 2, log_end_offset=9)
    crashed(world, 2)
    report(world, 1, log_end_offset=7)
    world.beat(1)
    assert world.partition("t").leader == -1
    report(world, 2, log_end_offset=6)
    assert told(world) == (1, True, "LOG_ELECTION", {1: (0, 7), 2: (0, 6)})


def test_aggressive_elects_the_first_log_that_is_there() -> None:
    world = crashed_out("Aggressive")
    world.beat(1)
    assert world.partition("t").leader == -1, "its log is not known"
    report(world, 3, log_end_offset=5)
    assert world.partition("t").leader == -1, "its broker does not serve"
    world.beat(3)
    assert told(world) == (3, True, "LOG_ELECTION", {3: (0, 5)})


def test_none_leaves_the_choice_to_an_operator_who_gets_the_most_complete_log() -> None:
    world = crashed_out("None")
    for broker in (1, 2, 3):
        report(world, broker, log_end_offset=5 + broker)
        world.beat(broker)
        assert world.partition("t").leader == -1
    world.publish("elect_leaders", election_type="unclean", partitions=[{"topic": "t", "partition": 0}])
    assert told(world) == (3, True, "LOG_ELECTION", {1: (0, 6), 2: (0, 7), 3: (0, 8)})


def test_without_a_strategy_the_last_known_leader_leads_whatever_was_reported() -> None:
    world = crashed_out(None)
    report(world, 1, log_end_offset=7)
    report(world, 2, log_end_offset=8)
    world.beat(2)
    assert world.partition("t").leader == -1
    world.beat(1)
    assert told(world)[:3] == (1, True, "UNCLEAN_ELECTION")


def test_a_strategy_takes_the_place_of_unclean_leader_election_enable() -> None:
    world = cluster(**{"unclean.recovery.strategy": "Balanced", "unclean.leader.election.enable": "true"})
    all_down(world)
    world.beat(3)
    assert world.partition("t").leader == -1


def test_a_strategy_that_is_set_during_the_outage_counts_the_reports_so_far() -> None:
    world = crashed_out("None")
    for broker in (1, 2):
        report(world, broker, log_end_offset=5 + broker)
        world.beat(broker)
    world.publish("alter_config", entity="topic", name="t", config={"unclean.recovery.strategy": "Balanced"})
    assert told(world)[0] == 2


def test_a_complete_log_is_elected_cleanly_whatever_the_strategy() -> None:
    world = crashed_out("Aggressive")
    report(world, 2)
    world.beat(2)
    assert told(world)[:3] == (2, False, "ELIGIBLE_ELECTION")


def test_no_strategy_counts_while_eligible_replicas_are_off() -> None:
    world = World()
    world.publish("controller_started", controller_id="c", controller_epoch=1, level=2)
    world.publish("raise_level", level=2)
    for broker in (1, 2):
        world.join(broker, log_dirs=DIRS)
    config = {"unclean.recovery.strategy": "None", "unclean.leader.election.enable": "true"}
    world.create("t", (1, 2), **config)
    world.alter_isr("t", (1,))
    world.beat(1, fence=True)
    assert world.partition("t").leader == 2


GATEWAY = {"gateway": 100, "incarnation": "g", "voters": [100], "is_kraft": True, "level": 2}


@pytest.mark.parametrize(("strategy", "leader"), [("Balanced", 1), ("Aggressive", 1), ("None", -1)])
def test_a_strategy_that_compares_logs_counts_as_unset_from_the_first_gateway_on(strategy: str, leader: int) -> None:
    world = crashed_out(strategy)
    world.beat(1)
    assert world.partition("t").leader == -1, "its log was not reported"
    config = {"entity": "topic", "name": "t", "config": {"retention.ms": "1"}}
    # In one batch, so the first gateway starts after another event has read the topic's settings.
    texts = [world.text_of("alter_config", **config), world.text_of("gateway_started", **GATEWAY)]
    events = [
        Logged(world.state.cluster.seq + place, world.now, decode(raw), raw) for place, raw in enumerate(texts, 1)
    ]
    assert [type(event.event) for event in events] == [AlterConfig, GatewayStarted]
    world.state = step(world.state, events, world.policy, overrides=world.overrides).state
    assert world.partition("t").leader == leader
    assert world.partition("t").leader_recovery_state.name == ("RECOVERED" if leader == -1 else "RECOVERING")


@pytest.mark.parametrize("name", [{}, {"name": "t"}])
def test_an_operator_can_be_waited_for_behind_a_gateway(name: dict[str, str]) -> None:
    world = crashed_out(None)
    world.publish("gateway_started", **GATEWAY)
    entity = "topic" if name else "cluster"
    world.publish("alter_config", entity=entity, config={"unclean.recovery.strategy": "None"}, **name)
    assert world.error == "NONE"
    world.beat(1)
    assert world.partition("t").leader == -1


@pytest.mark.parametrize(
    ("level", "gateway", "value", "message"),
    [
        (1, False, "Balanced", "needs level 2, and the level is 1: raise it first"),
        (2, True, "Balanced", "cannot be Balanced with a gateway: the brokers behind it report no logs"),
        (2, True, " Aggressive ", "cannot be Aggressive with a gateway: the brokers behind it report no logs"),
        (2, False, "balanced", "is 'balanced': expected one of None, Balanced, Aggressive"),
    ],
)
@pytest.mark.parametrize("entity", ["topic", "cluster"])
def test_a_strategy_is_refused_where_it_cannot_work(
    level: int, gateway: bool, value: str, message: str, entity: str
) -> None:
    world = cluster(level=level)
    if gateway:
        world.publish("gateway_started", **GATEWAY)
    name = {"name": "t"} if entity == "topic" else {}
    world.publish("alter_config", entity=entity, config={"unclean.recovery.strategy": value}, **name)
    assert world.error == "INVALID_CONFIG"
    assert world.one(Answer).message.endswith(message)
