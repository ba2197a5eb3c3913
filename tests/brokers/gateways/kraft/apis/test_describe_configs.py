"""The settings that a gateway describes, and those that it hides."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from brokers.gateways.kraft.apis.describe_configs import RESOURCES_MAX
from brokers.gateways.shared.apis.topic_defaults import DEFAULTS
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from tests.brokers.gateways.kraft.apis.topic_requests import create, new_topic
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum
from tests.support.waiting import wait_until_equal

pytestmark = pytest.mark.usefixtures("epochs")
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32
SET, DELETE = 0, 1
# DescribeConfigsResponse.ConfigSource
OF_DEFAULTS, OF_CLIENT_METRICS = 5, 7
LISTENERS = "listener.name.external"
HIDDEN = [
    "delegation.token.secret.key",
    "sasl.oauthbearer.client.credentials.client.secret",
    f"{LISTENERS}.sasl.oauthbearer.client.credentials.client.secret",
    f"{LISTENERS}.scram-sha-256.sasl.jaas.config",
    f"{LISTENERS}.ssl.key.password",
    "ssl.truststore.certificates",
    "x.SSL.KEY.PASSWORD",
    "my.metrics.reporter.api.secret",
]
SHOWN = {
    "log.retention.ms": 5,
    "ssl.keystore.location": 2,
    f"{LISTENERS}.ssl.enabled.protocols": 7,
    f"{LISTENERS}.max.connections": 3,
    "leader.replication.throttled.rate": 5,
    # The engine's own, of which Kafka knows nothing.
    "broker.connection.lost.grace.ms": 0,
}


def alter(client: ControllerClient, operation: int, value: str | None) -> None:
    configs = [{"Name": name, "ConfigOperation": operation, "Value": value} for name in (*HIDDEN, *SHOWN)]
    of_all = {"ResourceType": BROKER, "ResourceName": "", "Configs": configs}
    [response] = client.forward("IncrementalAlterConfigs", Resources=[of_all])["Responses"]
    assert response["ErrorCode"] == ErrorCode.NONE


@pytest.fixture
def described(client: ControllerClient) -> Iterator[dict[str, Values]]:
    alter(client, SET, "7")
    asked = {"ResourceType": BROKER, "ResourceName": ""}
    [result] = client.ask("DescribeConfigs", Resources=[asked], IncludeSynonyms=True)["Results"]
    yield {one["Name"]: one for one in result["Configs"]}
    alter(client, DELETE, None)


def test_passwords_and_what_nobody_knows_are_hidden(described: dict[str, Values]) -> None:
    for name in HIDDEN:
        told = described[name]
        assert (told["Value"], told["IsSensitive"]) == (None, True), name
        assert [one["Value"] for one in told["Synonyms"]] == [None]


def test_other_settings_are_shown_with_their_types(described: dict[str, Values]) -> None:
    told = {name: described[name] for name in SHOWN}
    assert {name: one["ConfigType"] for name, one in told.items()} == SHOWN
    assert {(one["Value"], one["IsSensitive"]) for one in told.values()} == {("7", False)}


def test_a_gateway_that_does_not_lead_describes_itself(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, 2)
    try:
        client, standby = quorum.client(100), quorum.client(101)
        itself = {"ResourceType": BROKER, "ResourceName": "101"}
        change = [{"Name": "log.retention.ms", "ConfigOperation": SET, "Value": "7"}]
        [response] = client.ask("IncrementalAlterConfigs", Resources=[itself | {"Configs": change}])["Responses"]
        assert response["ErrorCode"] == ErrorCode.NONE

        def described() -> list[tuple[str, str]]:
            [result] = standby.ask("DescribeConfigs", Resources=[itself])["Results"]
            assert result["ErrorCode"] == ErrorCode.NONE
            return [(one["Name"], one["Value"]) for one in result["Configs"]]

        wait_until_equal(described, [("log.retention.ms", "7")], "the other gateway to hear of it")
        client.close()
        standby.close()
    finally:
        quorum.stop()


def asked(name: str, *keys: str) -> Values:
    return {"ResourceType": TOPIC, "ResourceName": name, "ConfigurationKeys": list(keys) or None}


@pytest.mark.parametrize(
    ("named", "count"),
    [
        ([asked("repeated")] * 100, len(DEFAULTS)),
        ([asked("repeated", "retention.ms"), asked("repeated", "segment.ms"), asked("repeated", "segment.ms")], 2),
        ([asked("repeated", "retention.ms"), asked("repeated"), asked("repeated", "segment.ms")], len(DEFAULTS)),
        ([asked("repeated"), asked("repeated", "segment.ms")], len(DEFAULTS)),
    ],
)
def test_a_resource_is_described_once_however_often_it_is_named(
    client: ControllerClient, named: list[Values], count: int
) -> None:
    # Another case may have created it.
    create(client, new_topic("repeated"))
    first, other = client.ask("DescribeConfigs", Resources=[*named, asked("other")])["Results"]
    assert (first["ResourceName"], first["ErrorCode"], len(first["Configs"])) == ("repeated", ErrorCode.NONE, count)
    assert (other["ResourceName"], other["ErrorCode"]) == ("other", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def test_a_subscription_to_clients_metrics_has_defaults(client: ControllerClient) -> None:
    subscription = {"ResourceType": METRICS, "ResourceName": "some"}

    def described() -> dict[str, tuple[str, int]]:
        [result] = client.ask("DescribeConfigs", Resources=[subscription])["Results"]
        return {one["Name"]: (one["Value"], one["ConfigSource"]) for one in result["Configs"]}

    defaults = {"interval.ms": ("300000", OF_DEFAULTS), "match": ("", OF_DEFAULTS), "metrics": ("", OF_DEFAULTS)}
    assert described() == defaults
    change = [{"Name": "interval.ms", "ConfigOperation": SET, "Value": "1000"}]
    client.ask("IncrementalAlterConfigs", Resources=[subscription | {"Configs": change}])
    assert described() == defaults | {"interval.ms": ("1000", OF_CLIENT_METRICS)}


def test_a_request_for_too_many_resources_is_refused(client: ControllerClient) -> None:
    many = [{"ResourceType": GROUP, "ResourceName": f"g{number}"} for number in range(RESOURCES_MAX + 1)]
    results = client.ask("DescribeConfigs", Resources=many)["Results"]
    assert len(results) == len(many)
    assert {(one["ErrorCode"], len(one["Configs"])) for one in results} == {(ErrorCode.POLICY_VIOLATION, 0)}
    assert f"{RESOURCES_MAX + 1} resources" in results[0]["ErrorMessage"]
