"""The view of the cluster belongs to the thread that takes decisions in. No other thread iterates over it."""

import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from brokers.gateways.zk import topic_size, znodes
from brokers.gateways.zk.cluster_view import TopicView
from bus.clock import now_ms
from state.events import AlterReassignment, CreatePartitions, CreateTopic
from tests.brokers.gateways.zk.gateways import gateways
from tests.support.waiting import TIMEOUT_S, wait_until

QUICK = {"gateway_heartbeat_interval_ms": 50, "broker_heartbeat_interval_ms": 50}
MOVE = b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[2,1]}]}'


def test_a_topic_that_grows_while_a_move_is_measured_ends_no_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measures = threading.Event()
    topics: list[TopicView] = []
    topic_bytes, partition_bytes = topic_size.topic_bytes, topic_size.partition_bytes

    def measured(topic: TopicView) -> int:
        topics.append(topic)
        return topic_bytes(topic)

    def measured_partition(*given: Any) -> int:
        measures.set()
        # The gateway's own thread takes decisions in, so while it measures there are none.
        if threading.current_thread().name != "gateway-100":
            wait_until(lambda: len(topics[0].partitions) > 1, "the topic to grow")
        return partition_bytes(*given)

    monkeypatch.setattr(topic_size, "topic_bytes", measured)
    monkeypatch.setattr(topic_size, "partition_bytes", measured_partition)
    with gateways(tmp_path, monkeypatch, 1, {}, **QUICK) as led:
        for number in (1, 2):
            led.tree.put_broker(number)
        led.start(100)
        wait_until(lambda: led.state_of(1) == led.state_of(2) == "active", "the brokers to serve")
        led.bus.publish([json.encode(CreateTopic(time_ms=now_ms(), topic="t", assignment={"0": (1, 2)}))])
        wait_until(lambda: "/brokers/topics/t/partitions/0/state" in led.tree.znodes, "the topic to be written")
        led.tree.put(znodes.REASSIGN_PARTITIONS, MOVE)
        assert measures.wait(TIMEOUT_S)
        led.bus.publish([json.encode(CreatePartitions(time_ms=now_ms(), topic="t", total=2))])
        wait_until(lambda: "/brokers/topics/t/partitions/1/state" in led.tree.znodes, "the topic to grow")
        wait_until(lambda: znodes.REASSIGN_PARTITIONS not in led.tree.znodes, "the move to be done")
        assert len(led.events(AlterReassignment)) == 1
        assert len(led.tree.epochs) == 1
