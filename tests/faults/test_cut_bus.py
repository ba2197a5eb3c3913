"""The leading gateway is cut from a bus on Kafka: another one leads, and no broker is fenced."""

import pytest

from tests.faults.cut_scenarios import LONG_S, SCENARIOS
from tests.faults.hosted_cluster import HostedCluster, OnKafkaBus
from tests.faults.load import Load

pytestmark = [pytest.mark.kraft, pytest.mark.timeout(900)]
CLUSTER = OnKafkaBus


def test_a_gateway_that_is_cut_from_its_bus_gives_way(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["bus-cut"](*led, LONG_S)
    assert measured.has_moved and not measured.was_noticed, str(measured)


def test_a_gateway_on_a_lossy_link_to_its_bus_is_not_noticed(led: tuple[HostedCluster, Load]) -> None:
    measured = SCENARIOS["bus-lossy"](*led, LONG_S)
    assert not measured.was_noticed, str(measured)
