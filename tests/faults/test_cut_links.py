"""Links of the gateway that leads real brokers are cut: another one leads, no broker is fenced, and nothing is lost."""

import pytest

from tests.faults.cut_scenarios import LAST, LONG_S, NOTHING, SCENARIOS
from tests.faults.hosted_cluster import BROKERS, HostedCluster, LedCluster
from tests.faults.load import Load
from tests.faults.power_scenarios import POWER_LOSSES

pytestmark = [pytest.mark.kraft, pytest.mark.timeout(900)]
CLUSTER = LedCluster
# More than two seconds of records, which may be on their way when a cut begins.
SOME = 60


def test_a_gateway_that_is_cut_from_all_gives_way(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["alone"](*led, LONG_S)
    assert measured.has_moved and not measured.was_noticed, str(measured)


def test_most_brokers_win_and_power_lost_behind_the_cut_loses_nothing(led: tuple[HostedCluster, Load]) -> None:
    measured = POWER_LOSSES["power_loss"](*led, 25)
    assert measured.has_moved, str(measured)
    assert {broker for broker, _ in measured.fences} == {LAST}, str(measured)
    assert measured.alone_max == 0 and measured.acks > SOME, str(measured)
    assert measured.lost == NOTHING, str(measured)


@pytest.mark.parametrize("way", ["to", "from", "refused"])
def test_a_gateway_whose_listener_is_cut_gives_way(led: tuple[HostedCluster, Load], way: str) -> None:
    measured = SCENARIOS[f"listener-{way}"](*led, LONG_S)
    assert measured.has_moved and not measured.was_noticed, str(measured)


def test_gateways_that_no_broker_reaches_fence_all_and_lose_nothing(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["deaf"](*led, 30)
    # When the cut ends, brokers may reach the former leader first.
    during = [voter for voter, after_s in measured.leaders if after_s < 30]
    assert len(during) == 1 and during != [measured.led], str(measured)
    assert {broker for broker, _ in measured.fences} == {*BROKERS}, str(measured)
    assert measured.lost == NOTHING, str(measured)


@pytest.mark.parametrize("way", ["lossy", "slow"])
def test_a_lossy_or_slow_link_to_the_gateway_is_not_noticed(led: tuple[HostedCluster, Load], way: str) -> None:
    measured = SCENARIOS[f"listener-{way}"](*led, LONG_S)
    assert not measured.was_noticed, str(measured)


def test_gateways_need_no_link_to_each_other(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["controllers-cut"](*led, LONG_S)
    assert measured.leaders == [] and not measured.was_noticed, str(measured)


def test_a_dead_broker_is_fenced_though_gateways_are_killed_in_turn(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["take_overs"](*led, 100)
    assert {broker for broker, _ in measured.fences} == {LAST}, str(measured)
    assert measured.lost == NOTHING, str(measured)


@pytest.mark.long
@pytest.mark.parametrize("how", ["followers_cut", "followers_frozen"])
def test_the_last_one_in_sync_loses_power_and_an_eligible_one_leads(led: tuple[HostedCluster, Load], how: str) -> None:
    """With ``followers_killed`` records are lost, as with Kafka: each follower may have lost the end of its log."""
    measured = POWER_LOSSES[how](*led, 25)
    assert measured.alone_max > 0, str(measured)
    assert measured.lost == NOTHING, str(measured)
