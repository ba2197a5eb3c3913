"""The package reads a bus whose topics Kafka compresses, in every codec that Kafka has. On real Kafka."""

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

import isrflow
from bus.kafka.topics import wanted_topics
from isrflow.kafka.address import parse
from tests.support.rules_engine import RulesEngine
from tests.support.waiting import TIMEOUT_S, wait_until

pytestmark = pytest.mark.kafka_bus


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_request_on_a_bus_whose_topics_are_compressed_is_answered(kafka_url: str, codec: str) -> None:
    address = parse(kafka_url)
    admin = AdminClient({"bootstrap.servers": address.servers})
    made = [
        NewTopic(topic.topic, topic.num_partitions, 1, config={**(topic.config or {}), "compression.type": codec})
        for topic in wanted_topics(address, 1).values()
    ]
    for one in admin.create_topics(made).values():
        one.result(TIMEOUT_S)
    wait_until(lambda: address.reports in admin.list_topics(timeout=TIMEOUT_S).topics, "the topics to be listed")
    engine = RulesEngine()
    engine.start(kafka_url)
    with isrflow.connect(kafka_url) as bus:
        assert bus.ask({"kind": "broker_register", "broker": 7, "incarnation": "a"})["error"] == "NONE"
        assert {"broker", "answer"} <= {one["kind"] for one in bus.decisions()}
    engine.stop()
