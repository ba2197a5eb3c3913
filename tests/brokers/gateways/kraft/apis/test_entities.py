"""Client quotas, and settings of groups and of subscriptions to clients' metrics, at a gateway."""

from typing import Any

import pytest

from brokers.gateways.kraft.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from tests.brokers.gateways.kraft.apis.topic_requests import new_topic
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

SET, DELETE, APPEND = range(3)


pytestmark = pytest.mark.usefixtures("epochs")


def entry(names: dict[str, str | None], **quotas: float | None) -> Values:
    ops = [{"Key": key, "Value": value or 0.0, "Remove": value is None} for key, value in quotas.items()]
    return {"Entity": [{"EntityType": part, "EntityName": name} for part, name in names.items()], "Ops": ops}


def alter(client: ControllerClient, *entries: Values, **more: Any) -> list[int]:
    response = client.forward("AlterClientQuotas", Entries=list(entries), **more)
    return [one["ErrorCode"] for one in response["Entries"]]


def held(quorum: InProcessQuorum, entity_type: str) -> dict[str, dict[str, str]]:
    listed = quorum.view().get("entities", [])
    return {str(one["names"]): one["values"] for one in listed if one["entity_type"] == entity_type}


def test_quotas_are_set_and_removed_each_entity_by_itself(quorum: InProcessQuorum, client: ControllerClient) -> None:
    alice = {"user": "alice"}
    wrong = entry({"user": "bob"}, no_such_quota=1.0)
    both = entry({"user": None, "client-id": "c"}, consumer_byte_rate=2.0)
    assert alter(client, entry(alice, producer_byte_rate=1024.0), wrong, both) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NONE,
    ]
    expected = {str(alice): {"producer_byte_rate": "1024.0"}}
    expected[str({"client-id": "c", "user": None})] = {"consumer_byte_rate": "2.0"}
    assert held(quorum, "client_quota") == expected
    assert alter(client, entry(alice, producer_byte_rate=9.0), ValidateOnly=True) == [ErrorCode.NONE]
    assert held(quorum, "client_quota") == expected
    assert alter(client, entry(alice, producer_byte_rate=None)) == [ErrorCode.NONE]
    assert str(alice) not in held(quorum, "client_quota")


@pytest.mark.parametrize(
    "entries",
    [
        [entry({"user": "x"}, producer_byte_rate=1.0), entry({"user": "x"}, consumer_byte_rate=1.0)],
        [entry({"user": "x"}, producer_byte_rate=float("inf"))],
        [entry({"user": "x"}, producer_byte_rate=float("nan"))],
        [entry({})],
        [{"Entity": entry({"user": "x"})["Entity"] * 2, "Ops": []}],
        [{"Entity": entry({"user": "x"})["Entity"], "Ops": entry({}, producer_byte_rate=1.0)["Ops"] * 2}],
    ],
)
def test_quotas_that_cannot_be_are_refused(
    quorum: InProcessQuorum, client: ControllerClient, entries: list[Values]
) -> None:
    before = held(quorum, "client_quota")
    assert set(alter(client, *entries)) == {ErrorCode.INVALID_REQUEST}
    assert held(quorum, "client_quota") == before


def change(client: ControllerClient, kind: int, name: str, *changes: tuple[str, int, str | None]) -> int:
    configs = [{"Name": key, "ConfigOperation": operation, "Value": value} for key, operation, value in changes]
    resource = {"ResourceType": kind, "ResourceName": name, "Configs": configs}
    [response] = client.forward("IncrementalAlterConfigs", Resources=[resource])["Responses"]
    return int(response["ErrorCode"])


def described(client: ControllerClient, kind: int, name: str, *keys: str) -> tuple[int, dict[str, tuple[str, int]]]:
    resource = {"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": list(keys) or None}
    [result] = client.ask("DescribeConfigs", Resources=[resource])["Results"]
    return result["ErrorCode"], {one["Name"]: (one["Value"], one["ConfigSource"]) for one in result["Configs"]}


def test_settings_of_a_group_are_set_and_described(client: ControllerClient) -> None:
    session = "consumer.session.timeout.ms"
    assert change(client, GROUP_RESOURCE, "g", (session, SET, "50000")) == ErrorCode.NONE
    error, settings = described(client, GROUP_RESOURCE, "g")
    assert error == ErrorCode.NONE
    assert settings[session] == ("50000", 8)
    assert settings["consumer.heartbeat.interval.ms"] == ("5000", 5)
    assert described(client, GROUP_RESOURCE, "g", session) == (ErrorCode.NONE, {session: ("50000", 8)})
    assert change(client, GROUP_RESOURCE, "g", (session, SET, "1")) == ErrorCode.INVALID_CONFIG
    assert change(client, GROUP_RESOURCE, "g", (session, APPEND, "1")) == ErrorCode.INVALID_CONFIG
    assert change(client, GROUP_RESOURCE, "", (session, SET, "50000")) == ErrorCode.INVALID_REQUEST
    assert change(client, GROUP_RESOURCE, "g", (session, DELETE, None)) == ErrorCode.NONE
    assert described(client, GROUP_RESOURCE, "g")[1][session] == ("45000", 5)


def test_a_subscription_is_set_and_described(client: ControllerClient) -> None:
    metrics = ("metrics", SET, "org.apache.kafka.producer.")
    assert change(client, CLIENT_METRICS_RESOURCE, "m", ("interval.ms", SET, "1000"), metrics) == ErrorCode.NONE
    assert change(client, CLIENT_METRICS_RESOURCE, "m", ("match", SET, "client_id=a")) == ErrorCode.NONE
    assert change(client, CLIENT_METRICS_RESOURCE, "m", ("match", SET, "client_id")) == ErrorCode.INVALID_CONFIG
    for name in ("match", "metrics", "interval.ms"):
        assert change(client, CLIENT_METRICS_RESOURCE, "m", (name, APPEND, "2")) == ErrorCode.INVALID_CONFIG, name
    assert described(client, CLIENT_METRICS_RESOURCE, "m") == (
        ErrorCode.NONE,
        {"interval.ms": ("1000", 7), "match": ("client_id=a", 7), "metrics": ("org.apache.kafka.producer.", 7)},
    )


def test_topics_and_brokers_are_described(client: ControllerClient) -> None:
    assert client.forward("CreateTopics", Topics=[new_topic("t", 1, 1)])["Topics"][0]["ErrorCode"] == ErrorCode.NONE
    assert change(client, TOPIC_RESOURCE, "t", ("retention.ms", SET, "1000")) == ErrorCode.NONE
    settings = described(client, TOPIC_RESOURCE, "t")[1]
    assert (settings["retention.ms"], settings["cleanup.policy"]) == (("1000", 1), ("delete", 5))
    assert described(client, TOPIC_RESOURCE, "none") == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, {})
    secret = "listener.name.x.ssl.keystore.password"
    assert change(client, BROKER_RESOURCE, "", (secret, SET, "s3cret"), ("log.retention.ms", SET, "9")) == 0
    settings = described(client, BROKER_RESOURCE, "")[1]
    assert (settings[secret], settings["log.retention.ms"]) == ((None, 3), ("9", 3))
    assert described(client, BROKER_RESOURCE, "100")[0] == ErrorCode.NONE, "itself"
    assert described(client, BROKER_RESOURCE, "1")[0] == ErrorCode.INVALID_REQUEST
    assert described(client, 8, "1")[0] == ErrorCode.INVALID_REQUEST
