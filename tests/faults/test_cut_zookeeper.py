"""A gateway that leads brokers in ZooKeeper mode is cut from ZooKeeper, or from the brokers: another one leads."""

import pytest

from tests.faults.cut_scenarios import LAST, NOTHING, SCENARIOS
from tests.faults.hosted_cluster import HostedCluster
from tests.faults.hosted_zookeeper import OnZookeeper
from tests.faults.load import Load

pytestmark = [pytest.mark.zookeeper, pytest.mark.timeout(900)]
CLUSTER = OnZookeeper


def test_a_gateway_that_is_cut_from_zookeeper_gives_way(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["zookeeper-cut"](*led, 15)
    assert measured.has_moved and not measured.was_noticed, str(measured)


def test_a_gateway_that_reaches_zookeeper_and_no_broker_gives_way(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["untold"](*led, 30)
    assert measured.has_moved, str(measured)
    assert {broker for broker, _ in measured.fences} == {LAST}, str(measured)
    # Each of them writes to partitions that the dead broker led.
    assert measured.commits > 2, str(measured)
    assert measured.lost == NOTHING, str(measured)
