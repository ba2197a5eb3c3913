"""The levels of features at a gateway: raised, lowered, and refused if a broker does not support them."""

from pathlib import Path
from typing import Any

import pytest

from brokers.wire.errors import ErrorCode
from bus.image import read_image
from state.features import ELIGIBLE_VERSION, SERVED, first_levels
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import SUPPORTED as BROKER_FEATURES
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until

UPGRADE, SAFE, UNSAFE = 1, 2, 3
ELIGIBLE = {"Name": ELIGIBLE_VERSION, "MinSupportedVersion": 0, "MaxSupportedVersion": 1}


pytestmark = pytest.mark.usefixtures("epochs")


def update(client: ControllerClient, levels: dict[str, int], how: int = UPGRADE, **more: Any) -> int:
    updates = [{"Feature": feature, "MaxVersionLevel": level, "UpgradeType": how} for feature, level in levels.items()]
    return int(client.forward("UpdateFeatures", FeatureUpdates=updates, **more)["ErrorCode"])


def finalized(client: ControllerClient) -> dict[str, int]:
    return {one["Name"]: one["MaxVersionLevel"] for one in client.ask("ApiVersions")["FinalizedFeatures"]}


def test_what_is_supported_is_told(client: ControllerClient) -> None:
    told = client.ask("ApiVersions")["SupportedFeatures"]
    levels = {one["Name"]: (one["MinVersion"], one["MaxVersion"]) for one in told}
    assert levels == SERVED


def test_levels_are_lowered_and_raised(client: ControllerClient) -> None:
    assert finalized(client) == first_levels()
    assert update(client, {"group.version": 0}) == ErrorCode.INVALID_UPDATE_VERSION, "that is no upgrade"
    assert update(client, {"group.version": 0}, SAFE, ValidateOnly=True) == ErrorCode.NONE
    assert finalized(client) == first_levels()
    assert update(client, {"group.version": 0, "transaction.version": 1}, SAFE) == ErrorCode.NONE
    assert finalized(client) == {"metadata.version": 27, "transaction.version": 1}
    assert update(client, first_levels()) == ErrorCode.NONE
    assert finalized(client) == first_levels()


@pytest.mark.parametrize(
    ("levels", "how"),
    [
        ({"metadata.version": 28}, UPGRADE),
        ({"metadata.version": 26}, UPGRADE),
        ({"metadata.version": 26}, SAFE),
        ({"metadata.version": 26}, UNSAFE),
        ({"eligible.leader.replicas.version": 1}, UPGRADE),
        ({"no.such.version": 1}, UPGRADE),
        ({"transaction.version": 3}, UPGRADE),
        ({"transaction.version": -1}, SAFE),
        ({"transaction.version": 1}, 9),
        ({"share.version": 1}, SAFE),
        ({"streams.version": 1}, UPGRADE),
        ({"group.version": 0, "transaction.version": 3}, SAFE),
    ],
)
def test_levels_that_cannot_be_are_refused_all_together(
    client: ControllerClient, levels: dict[str, int], how: int
) -> None:
    assert update(client, levels, how) == ErrorCode.INVALID_UPDATE_VERSION
    assert finalized(client) == first_levels()


def test_a_level_that_a_broker_does_not_support_is_refused(client: ControllerClient) -> None:
    """The brokers of these tests know nothing of share groups."""
    response = client.forward(
        "UpdateFeatures", FeatureUpdates=[{"Feature": "share.version", "MaxVersionLevel": 1, "UpgradeType": UPGRADE}]
    )
    assert response["ErrorCode"] == ErrorCode.INVALID_UPDATE_VERSION
    assert "broker 1 does not support the feature" in response["ErrorMessage"]


def test_older_versions_of_the_request_are_answered(client: ControllerClient) -> None:
    down = [{"Feature": "group.version", "MaxVersionLevel": 0, "AllowDowngrade": True}]
    assert client.forward("UpdateFeatures", 0, FeatureUpdates=down)["Results"][0]["ErrorCode"] == ErrorCode.NONE
    up = [{"Feature": "group.version", "MaxVersionLevel": 1, "UpgradeType": UPGRADE}]
    assert client.forward("UpdateFeatures", 1, FeatureUpdates=up)["Results"][0]["Feature"] == "group.version"


@pytest.mark.parametrize("refused", [{"share.version": 1}, {"eligible.leader.replicas.version": 1}])
def test_voters_settings_and_other_levels_change_all_or_none(client: ControllerClient, refused: dict[str, int]) -> None:
    """A bus at level 1 has no eligible leader replicas, and the brokers of these tests no share groups."""
    levels = {"kraft.version": 1, "group.version": 1, "transaction.version": 1} | refused
    assert update(client, {"transaction.version": 0}, SAFE) == ErrorCode.NONE
    before = finalized(client)
    assert update(client, levels) == ErrorCode.INVALID_UPDATE_VERSION
    assert finalized(client) == before


def test_a_level_is_checked_against_what_the_request_before_it_made(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    first, second = quorum.client(), quorum.client()

    def is_asked(after: int) -> bool:
        return any(b"alter_entity" in one.raw for one in quorum.bus.read(after, quorum.bus.last_seq()))

    try:
        quorum.join(first, 1)
        assert update(first, {"transaction.version": 0}, SAFE) == ErrorCode.NONE
        quorum.engine.stop()
        asked = quorum.bus.last_seq()
        for client, level in ((first, 2), (second, 1)):
            raised = {"Feature": "transaction.version", "MaxVersionLevel": level, "UpgradeType": UPGRADE}
            client.send("UpdateFeatures", FeatureUpdates=[raised])
            wait_until(lambda: is_asked(asked), "the first request to be on the bus")
        quorum.decide_by()
        assert first.receive("UpdateFeatures")["ErrorCode"] == ErrorCode.NONE
        assert second.receive("UpdateFeatures")["ErrorCode"] == ErrorCode.INVALID_UPDATE_VERSION
        assert finalized(first)["transaction.version"] == 2
    finally:
        for client in (first, second):
            client.close()
        quorum.stop()


def test_eligible_leader_replicas_are_turned_on_and_off_from_level_2_on(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    client = quorum.client()
    version = ELIGIBLE_VERSION
    features = [*BROKER_FEATURES, ELIGIBLE]
    try:
        answer = client.ask("BrokerRegistration", **quorum.registration(1, Features=features))
        assert answer["ErrorCode"] == ErrorCode.NONE
        assert update(client, {version: 1}) == ErrorCode.INVALID_UPDATE_VERSION, "the level is 1"
        quorum.bus.publish([b'{"kind":"raise_level","time_ms":1,"level":2}'])
        wait_until(lambda: read_image(quorum.bus.image()).cluster.level == 2, "the level to be raised")
        assert update(client, {version: 1}, ValidateOnly=True) == ErrorCode.NONE
        assert version not in finalized(client)
        assert update(client, {version: 1, "transaction.version": 2}) == ErrorCode.NONE
        assert finalized(client)[version] == 1
        assert update(client, {version: 0}) == ErrorCode.INVALID_UPDATE_VERSION, "that is no upgrade"
        assert update(client, {version: 0}, SAFE) == ErrorCode.NONE
        assert version not in finalized(client)
    finally:
        client.close()
        quorum.stop()


def test_a_log_on_a_bus_at_level_2_begins_with_eligible_leader_replicas_and_an_admin_turns_them_off(
    tmp_path: Path,
) -> None:
    """The second gateway starts and asks for them too, and the first one later begins another epoch."""
    quorum = InProcessQuorum(tmp_path, gateways=2, level=2)
    client = quorum.client()
    try:
        features = [*BROKER_FEATURES, ELIGIBLE]
        answer = client.ask("BrokerRegistration", **quorum.registration(1, Features=features))
        assert answer["ErrorCode"] == ErrorCode.NONE
        assert finalized(client) == first_levels() | {ELIGIBLE_VERSION: 1}
        assert update(client, {ELIGIBLE_VERSION: 0}, SAFE) == ErrorCode.NONE
        client.close()
        quorum.gateways[100].stop()
        quorum.start(100)
        client = quorum.client()
        assert finalized(client) == first_levels()
    finally:
        client.close()
        quorum.stop()
