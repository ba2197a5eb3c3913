"""What the metadata versions of Kafka 4.3 and 4.4 allow: to cordon log directories, and to remove controllers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.wire.errors import ErrorCode
from state.decisions import encode
from state.events import RaiseLevel
from tests.brokers.gateways.kraft.apis.topic_requests import topics
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import SUPPORTED, InProcessQuorum, heartbeat

NEWEST = [SUPPORTED[0] | {"MaxSupportedVersion": 33}, *SUPPORTED[1:]]
DIRECTORY = "01LAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(tmp_path)
    yield quorum
    quorum.stop()


def joined(quorum: InProcessQuorum, client: ControllerClient, *brokers: int) -> dict[int, int]:
    epochs = {}
    for broker in brokers:
        answer = client.ask("BrokerRegistration", **quorum.registration(broker, Features=NEWEST))
        epochs[broker] = answer["BrokerEpoch"]
        assert client.ask("BrokerHeartbeat", **heartbeat(broker, epochs[broker]))["IsFenced"] is False
    return epochs


def cordon(client: ControllerClient) -> int:
    configs = [{"Name": "cordoned.log.dirs", "ConfigOperation": 0, "Value": "*"}]
    resource = {"ResourceType": 4, "ResourceName": "1", "Configs": configs}
    [response] = client.forward("IncrementalAlterConfigs", Resources=[resource])["Responses"]
    return int(response["ErrorCode"])


def raise_levels(quorum: InProcessQuorum, client: ControllerClient) -> None:
    quorum.bus.publish([encode(RaiseLevel(time_ms=0, level=2))])
    update = {"Feature": "metadata.version", "MaxVersionLevel": 30, "UpgradeType": 1}
    assert client.forward("UpdateFeatures", FeatureUpdates=[update])["ErrorCode"] == ErrorCode.NONE


def beat(client: ControllerClient, epoch: int, *cordoned: str) -> None:
    answer = client.ask("BrokerHeartbeat", 2, **heartbeat(1, epoch, CordonedLogDirs=list(cordoned)))
    assert (answer["ErrorCode"], answer["IsFenced"]) == (ErrorCode.NONE, False)


def placed(quorum: InProcessQuorum, client: ControllerClient, name: str) -> set[int]:
    topic = {"Name": name, "NumPartitions": 6, "ReplicationFactor": 1}
    [created] = client.ask("CreateTopics", Topics=[topic], timeoutMs=9_000)["Topics"]
    assert created["ErrorCode"] == ErrorCode.NONE
    return {broker for one in quorum.view()["partitions"] if one["topic"] == name for broker in one["replicas"]}


def test_a_cordoned_broker_gets_no_replicas_once_the_level_knows_cordoning(quorum: InProcessQuorum) -> None:
    client = quorum.client()
    try:
        epochs = joined(quorum, client, 1, 2)
        assert cordon(client) == ErrorCode.INVALID_CONFIG
        beat(client, epochs[1], DIRECTORY)
        assert placed(quorum, client, "below") == {1, 2}
        raise_levels(quorum, client)
        assert cordon(client) == ErrorCode.NONE
        beat(client, epochs[1], DIRECTORY)
        assert quorum.broker(1)["cordoned_log_dirs"] == (DIRECTORY,)
        assert placed(quorum, client, "above") == {2}
        beat(client, epochs[1])
        assert "cordoned_log_dirs" not in quorum.broker(1)
        assert placed(quorum, client, "again") == {1, 2}
        update = {"Feature": "metadata.version", "MaxVersionLevel": 33, "UpgradeType": 1}
        unregister = ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        for expected in unregister:
            assert client.forward("UnregisterController", ControllerId=100)["ErrorCode"] == expected
            client.forward("UpdateFeatures", FeatureUpdates=[update])
        # A broker registers again with the same incarnation, if its answer was lost.
        assert joined(quorum, client, 2)[2] == epochs[2]
        assert {*topics(quorum)} == {"below", "above", "again"}
    finally:
        client.close()
