"""Topics and groups get settings of Kafka 4.4 only on a bus at level 2, because the last release would refuse them."""

import pytest

from tests.support.world import World

FEATURES = [{"name": "metadata.version", "min_version": 7, "max_version": 33}]


@pytest.mark.parametrize(("level", "error"), [(1, "INVALID_CONFIG"), (2, "NONE")])
def test_settings_of_kafka_4_4_need_its_brokers_and_level_2(level: int, error: str) -> None:
    world = World()
    world.publish("controller_started", controller_id="c", controller_epoch=1, level=level)
    world.tick()
    world.publish("raise_level", level=level)
    world.publish("gateway_started", gateway=100, incarnation="g", voters=[100], is_kraft=True, level=level)
    world.join(1, behind_gateway=True, log_dirs=["A"], features=FEATURES)
    fields = {"topic": "t", "partitions": 1, "replication_factor": 1, "request_id": "c"}
    world.publish("create_topic", **fields, config={"remote.copy.lag.ms": "5"})
    assert world.error == error
    values = {"errors.deadletterqueue.topic.name": "dlq.t", "errors.deadletterqueue.copy.record.enable": "true"}
    for name, value in values.items():
        world.publish("alter_entity", entity_type="group", names={"group": "g"}, values={name: value}, request_id="g")
        assert world.error == error
        wrong = {name: "a/b"}
        world.publish("alter_entity", entity_type="group", names={"group": "g"}, values=wrong, request_id="g")
        assert world.error == "INVALID_CONFIG"
