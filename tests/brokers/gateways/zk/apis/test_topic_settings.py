"""In ZooKeeper mode topics have the settings of Kafka 3.9."""

import pytest

from brokers.gateways.zk.apis import topics
from brokers.gateways.zk.cluster_view import ClusterView
from brokers.gateways.zk.messages import CREATE_TOPICS
from brokers.wire.errors import ErrorCode
from tests.brokers.gateways.zk.asked import answer, new
from tests.brokers.gateways.zk.decided import broker


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("message.format.version", "2.8", ErrorCode.NONE),
        ("segment.bytes", "14", ErrorCode.NONE),
        ("segment.bytes", "13", ErrorCode.INVALID_CONFIG),
        ("internal.segment.bytes", "1048576", ErrorCode.INVALID_CONFIG),
    ],
)
def test_a_topic_gets_settings_that_its_brokers_know(name: str, value: str, error: ErrorCode) -> None:
    view = ClusterView()
    view.apply(broker(1))
    asked = new("t", 1, 1) | {"Configs": [{"Name": name, "Value": value}]}
    response, events = answer(view, CREATE_TOPICS, topics.create_topics, Topics=[asked], validateOnly=False)
    assert [one["ErrorCode"] for one in response["Topics"]] == [error]
    assert [event.config for event in events] == ([{name: value}] if error == ErrorCode.NONE else [])
