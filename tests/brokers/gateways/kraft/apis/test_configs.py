"""Requests about settings, forwarded by brokers in an Envelope."""

from itertools import groupby
from typing import Any

import pytest

from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.metadata.translate import translate
from brokers.wire.errors import ErrorCode
from brokers.wire.metadata.record_frame import decode_record
from bus.image import read_image
from state.decisions import decode
from tests.brokers.gateways.kraft.apis.topic_requests import create, created, new_topic, topics
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

pytestmark = pytest.mark.usefixtures("epochs")
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)


def test_settings_are_altered_step_by_step(quorum: InProcessQuorum, client: ControllerClient) -> None:
    created(client, "set")

    def alter(*steps: tuple[int, str, str | None], kind: int = TOPIC, name: str = "set") -> int:
        configs = [{"Name": key, "ConfigOperation": step, "Value": value} for step, key, value in steps]
        resource = {"ResourceType": kind, "ResourceName": name, "Configs": configs}
        [response] = client.forward("IncrementalAlterConfigs", Resources=[resource])["Responses"]
        assert (response["ResourceType"], response["ResourceName"]) == (kind, name)
        return int(response["ErrorCode"])

    assert alter((SET, "cleanup.policy", "compact"), (SET, "retention.ms", "5")) == ErrorCode.NONE
    assert alter((APPEND, "cleanup.policy", "delete"), (DELETE, "retention.ms", None)) == ErrorCode.NONE
    assert topics(quorum)["set"]["config"] == {"cleanup.policy": "compact,delete"}
    assert alter((SUBTRACT, "cleanup.policy", "compact")) == ErrorCode.NONE
    assert topics(quorum)["set"]["config"] == {"cleanup.policy": "delete"}
    assert alter((SET, "retention.ms", "5"), (SET, "retention.ms", "6")) == ErrorCode.INVALID_REQUEST
    assert alter((SET, "retention.ms", None)) == ErrorCode.INVALID_CONFIG
    assert alter((SET, "retention.ms", "soon")) == ErrorCode.INVALID_CONFIG
    assert alter((SET, "no.such.setting", "1")) == ErrorCode.INVALID_CONFIG
    assert alter((DELETE, "no.such.setting", None)) == ErrorCode.NONE
    assert alter((APPEND, "retention.ms", "1")) == ErrorCode.INVALID_CONFIG
    first, second = (",".join(f"{n}:{broker}" for n in range(3_500)) for broker in (1, 2))
    throttled = "leader.replication.throttled.replicas"
    assert alter((SET, throttled, first)) == ErrorCode.NONE
    assert alter((APPEND, throttled, second)) == ErrorCode.INVALID_CONFIG, "both are too long for Kafka"
    assert alter((DELETE, throttled, None)) == ErrorCode.NONE
    assert alter((9, "retention.ms", "1")) == ErrorCode.INVALID_REQUEST
    assert alter((SET, "retention.ms", "1"), kind=8) == ErrorCode.INVALID_REQUEST
    assert alter((SET, "retention.ms", "1"), name="nowhere") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert alter((SET, "retention.ms", "1"), name="no where") == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert alter((SET, "retention.ms", "1"), name="n" * 250) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert alter((SET, "log.cleaner.threads", "2"), kind=BROKER, name="") == ErrorCode.NONE
    assert alter((SET, "log.cleaner.threads", "2"), kind=BROKER, name="1") == ErrorCode.NONE
    assert alter((SET, "log.cleaner.threads", "2"), kind=BROKER, name="one") == ErrorCode.INVALID_REQUEST


def resource(name: str, *steps: tuple[int, str, str | None]) -> dict[str, Any]:
    configs = [{"Name": key, "ConfigOperation": step, "Value": value} for step, key, value in steps]
    return {"ResourceType": TOPIC, "ResourceName": name, "Configs": configs}


def test_changes_in_one_request_build_on_each_other(quorum: InProcessQuorum, client: ControllerClient) -> None:
    created(client, "together")
    created(client, "beside-it")
    throttled = "leader.replication.throttled.replicas"
    others = [quorum.client() for _ in range(3)]
    names = ("together", "beside-it")
    for number, other in enumerate(others):
        # The order in which they are named makes no difference.
        listed = [resource(name, (APPEND, throttled, f"{number}:1")) for name in names]
        other.send("IncrementalAlterConfigs", Resources=listed if number % 2 else listed[::-1])
    for other in others:
        responses = other.receive("IncrementalAlterConfigs")["Responses"]
        assert [one["ErrorCode"] for one in responses] == [ErrorCode.NONE] * 2
        other.close()
    held = topics(quorum)
    for name in names:
        assert sorted(held[name]["config"][throttled].split(",")) == ["0:1", "1:1", "2:1"]


def test_a_list_that_was_never_set_is_added_to_its_default(quorum: InProcessQuorum, client: ControllerClient) -> None:
    created(client, "by-default")
    steps = [(APPEND, "cleanup.policy", "compact"), (APPEND, "follower.replication.throttled.replicas", "0:1")]
    [response] = client.forward("IncrementalAlterConfigs", Resources=[resource("by-default", *steps)])["Responses"]
    assert response["ErrorCode"] == ErrorCode.NONE
    assert topics(quorum)["by-default"]["config"] == {
        "cleanup.policy": "delete,compact",
        "follower.replication.throttled.replicas": "0:1",
    }


def of_broker(quorum: InProcessQuorum, broker: str) -> dict[str, str]:
    """The settings of a broker, or with an empty name those of all brokers."""
    cluster = read_image(quorum.bus.image()).cluster
    return cluster.broker_config.get(broker, {}) if broker else cluster.config


def alter_brokers(client: ControllerClient, operation: int, key: str, value: str | None, name: str = "") -> ErrorCode:
    configs = [{"Name": key, "ConfigOperation": operation, "Value": value}]
    changed = {"ResourceType": BROKER, "ResourceName": name, "Configs": configs}
    [response] = client.forward("IncrementalAlterConfigs", Resources=[changed])["Responses"]
    return ErrorCode(response["ErrorCode"])


@pytest.mark.parametrize("broker", ["", "2"])
@pytest.mark.parametrize(
    ("name", "operation", "items", "after"),
    [
        ("log.cleanup.policy", APPEND, "compact", "delete,compact"),
        ("log.cleanup.policy", SUBTRACT, "delete", ""),
        ("ssl.enabled.protocols", SUBTRACT, "TLSv1.2", "TLSv1.3"),
        ("metric.reporters", APPEND, "a.B", "org.apache.kafka.common.metrics.JmxReporter,a.B"),
        ("ssl.cipher.suites", APPEND, "A", "A"),
    ],
)
def test_a_list_of_brokers_begins_with_kafkas_default(
    quorum: InProcessQuorum, client: ControllerClient, broker: str, name: str, operation: int, items: str, after: str
) -> None:
    assert alter_brokers(client, operation, name, items, broker) == ErrorCode.NONE
    assert of_broker(quorum, broker)[name] == after
    assert alter_brokers(client, DELETE, name, None, broker) == ErrorCode.NONE


@pytest.mark.parametrize(
    "name",
    ["message.max.bytes", "listener.name.ssl.ssl.enabled.protocols", "advertised.listeners", "no.such.setting"],
)
@pytest.mark.parametrize("operation", [APPEND, SUBTRACT])
def test_a_setting_of_brokers_that_is_no_list_gets_no_items(
    client: ControllerClient, name: str, operation: int
) -> None:
    assert alter_brokers(client, operation, name, "5") == ErrorCode.INVALID_CONFIG


@pytest.mark.parametrize(
    ("number", "held", "operation", "items", "after"),
    [
        (0, "0:1", APPEND, "0:2,0:2,0:1", "0:1,0:2"),
        (1, "0:1", APPEND, "0:2,,", "0:1,0:2"),
        (2, "0:1", APPEND, ",,", "0:1"),
        (3, "0:1", APPEND, "", "0:1,"),
        (4, "0:1,0:2,0:1,0:1", SUBTRACT, "0:1", "0:2,0:1,0:1"),
        (5, "0:1,0:2,0:1,0:1", SUBTRACT, "0:1,0:1,0:9,", "0:2,0:1"),
        (6, "0:1,,0:1", APPEND, "0:2", "0:1,0:1,0:2"),
    ],
)
def test_lists_are_split_and_compared_as_kafka_does(
    quorum: InProcessQuorum, client: ControllerClient, number: int, held: str, operation: int, items: str, after: str
) -> None:
    topic, throttled = f"split-{number}", "leader.replication.throttled.replicas"
    create(client, new_topic(topic, leader_replication_throttled_replicas=held))
    [response] = client.forward("IncrementalAlterConfigs", Resources=[resource(topic, (operation, throttled, items))])[
        "Responses"
    ]
    assert response["ErrorCode"] == ErrorCode.NONE
    assert topics(quorum)[topic]["config"] == {throttled: after}


@pytest.mark.parametrize("name", ["IncrementalAlterConfigs", "AlterConfigs"])
def test_a_resource_that_is_named_twice_is_refused_once(
    quorum: InProcessQuorum, client: ControllerClient, name: str
) -> None:
    twice, once = f"twice-{name}", f"once-{name}"
    for topic in (twice, once):
        created(client, topic)
    operation = {"ConfigOperation": SET} if name.startswith("Incremental") else {}
    named = [
        {
            "ResourceType": TOPIC,
            "ResourceName": topic,
            "Configs": [{"Name": "retention.ms", "Value": value} | operation],
        }
        for topic, value in [(twice, "1"), (once, "2"), (twice, "3")]
    ]
    response = client.forward(name, Resources=named)["Responses"]
    assert [(one["ResourceName"], one["ErrorCode"]) for one in response] == [
        (twice, ErrorCode.INVALID_REQUEST),
        (once, ErrorCode.NONE),
    ]
    assert (topics(quorum)[twice]["config"], topics(quorum)[once]["config"]) == ({}, {"retention.ms": "2"})


def test_old_clients_can_replace_settings(quorum: InProcessQuorum, client: ControllerClient) -> None:
    create(client, new_topic("replaced", retention_ms="7", max_message_bytes="1000"))
    configs = [{"Name": "retention.ms", "Value": "9"}]
    resource = {"ResourceType": TOPIC, "ResourceName": "replaced", "Configs": configs}
    [response] = client.forward("AlterConfigs", Resources=[resource])["Responses"]
    assert response["ErrorCode"] == ErrorCode.NONE
    assert topics(quorum)["replaced"]["config"] == {"retention.ms": "9"}


@pytest.mark.parametrize(
    ("resource_type", "name", "error"),
    [
        (77, "any", ErrorCode.UNSUPPORTED_VERSION),
        (8, "1", ErrorCode.INVALID_REQUEST),
        (2, "", ErrorCode.INVALID_REQUEST),
        (4, "99", ErrorCode.BROKER_ID_NOT_REGISTERED),
        (4, "-1", ErrorCode.INVALID_REQUEST),
        (4, "\u0661", ErrorCode.INVALID_REQUEST),
        (4, str(2**31), ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_resource_that_has_no_settings_is_refused(
    client: ControllerClient, resource_type: int, name: str, error: ErrorCode
) -> None:
    configs = [{"Name": "retention.ms", "ConfigOperation": 0, "Value": "1"}]
    resource = {"ResourceType": resource_type, "ResourceName": name, "Configs": configs}
    [answer] = client.forward("IncrementalAlterConfigs", Resources=[resource])["Responses"]
    assert answer["ErrorCode"] == error


def test_a_broker_id_of_thousands_of_digits_is_refused_by_itself(
    quorum: InProcessQuorum, client: ControllerClient
) -> None:
    names = ("9" * 5_000, "2")
    configs = [{"Name": "log.cleaner.threads", "ConfigOperation": SET, "Value": "3"}]
    named = [{"ResourceType": BROKER, "ResourceName": name, "Configs": configs} for name in names]
    responses = client.forward("IncrementalAlterConfigs", Resources=named)["Responses"]
    assert [one["ErrorCode"] for one in responses] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]


def test_topics_are_made_and_described_whatever_hours_all_brokers_have(client: ControllerClient) -> None:
    for number, hours in enumerate(("9" * 5_000, "+-5")):
        assert alter_brokers(client, SET, "log.retention.hours", hours) == ErrorCode.NONE
        name = f"under-odd-hours-{number}"
        created(client, name)
        wanted = {"ResourceType": TOPIC, "ResourceName": name, "ConfigurationKeys": ["retention.ms"]}
        [result] = client.ask("DescribeConfigs", Resources=[wanted])["Results"]
        assert [one["Value"] for one in result["Configs"]] == [hours]
    assert alter_brokers(client, DELETE, "log.retention.hours", None) == ErrorCode.NONE


def test_a_broker_id_with_leading_zeros_is_the_same_broker(quorum: InProcessQuorum, client: ControllerClient) -> None:
    def alter(*steps: tuple[str, int, str, str | None]) -> list[tuple[str, int]]:
        named = [
            {
                "ResourceType": BROKER,
                "ResourceName": broker,
                "Configs": [{"Name": name, "ConfigOperation": operation, "Value": value}],
            }
            for broker, operation, name, value in steps
        ]
        responses = client.forward("IncrementalAlterConfigs", Resources=named)["Responses"]
        return [(one["ResourceName"], one["ErrorCode"]) for one in responses]

    reporters = "metric.reporters"
    assert alter(("3", SET, reporters, "a.B")) == [("3", ErrorCode.NONE)]
    assert alter(("003", APPEND, reporters, "c.D")) == [("003", ErrorCode.NONE)]
    assert of_broker(quorum, "3") == {reporters: "a.B,c.D"}
    both = alter(("3", DELETE, reporters, None), ("03", SET, reporters, "e.F"))
    assert both == [("3", ErrorCode.INVALID_REQUEST), ("03", ErrorCode.INVALID_REQUEST)], "one is named twice"
    configs = [{"Name": "log.cleaner.threads", "Value": "2"}]
    replaced = {"ResourceType": BROKER, "ResourceName": "03", "Configs": configs}
    [response] = client.forward("AlterConfigs", Resources=[replaced])["Responses"]
    assert (response["ResourceName"], response["ErrorCode"]) == ("03", ErrorCode.NONE)
    assert of_broker(quorum, "3") == {"log.cleaner.threads": "2"}


def test_a_gateway_describes_itself_by_an_id_with_leading_zeros(client: ControllerClient) -> None:
    [result] = client.ask("DescribeConfigs", Resources=[{"ResourceType": BROKER, "ResourceName": "0100"}])["Results"]
    assert (result["ResourceName"], result["ErrorCode"]) == ("0100", ErrorCode.NONE)


@pytest.mark.parametrize("broker", ["", "1"])
def test_a_broker_hears_of_a_setting_that_is_set_again(
    quorum: InProcessQuorum, client: ControllerClient, broker: str
) -> None:
    key, path = "listener.name.client.ssl.keystore.location", "/etc/broker.p12"
    for _ in range(2):
        assert alter_brokers(client, SET, key, path, broker) == ErrorCode.NONE
    said = [decode(one.body) for one in quorum.bus.decisions((0, -1), 10_000)]
    image, told = MetadataImage(), []
    for _, decisions in groupby(said, key=lambda decision: decision.seq):
        image, entry = translate(image, list(decisions))
        records = [decode_record(record) for record in entry.records] if entry else []
        told += [one.values for one in records if one.name == "ConfigRecord" and one.values["Name"] == key]
    assert [one["Value"] for one in told if one["ResourceName"] == broker] == [path, path]
