"""Which lists brokers have among their settings depends on their release, which a metadata version tells."""

import pytest

from brokers.gateways.kraft.apis.broker_lists import broker_lists_in
from state.features import METADATA_VERSIONS


@pytest.mark.parametrize(
    ("release", "first", "last"), [("4.0", 22, 25), ("4.1", 26, 27), ("4.2", 28, 29), ("4.3", 30, 30), ("4.4", 31, 40)]
)
def test_a_level_between_two_releases_has_the_lists_of_the_later_one(release: str, first: int, last: int) -> None:
    assert first <= METADATA_VERSIONS[release] <= last
    lists = broker_lists_in(METADATA_VERSIONS[release])
    assert broker_lists_in(first) == broker_lists_in(last) == lists
    assert broker_lists_in(first - 1) != lists


def test_each_release_has_its_own_protocols_of_groups_and_assignors() -> None:
    lists = [broker_lists_in(METADATA_VERSIONS[release]) for release in METADATA_VERSIONS]
    protocols = [one["group.coordinator.rebalance.protocols"] for one in lists]
    assert protocols == ["classic", "classic,consumer", *["classic,consumer,streams"] * 4]
    assert ["group.share.assignors" in one for one in lists] == [False, False, True, True, True, True]
    assert ["zookeeper.ssl.enabled.protocols" in one for one in lists] == [True, False, False, False, False, False]
    assert ["listeners" in one for one in lists] == [False, False, False, True, True, True]
