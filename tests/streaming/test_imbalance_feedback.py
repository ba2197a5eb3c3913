"""Counts over all shards return to each shard through the bus."""

from pathlib import Path

import msgspec

from bus.embedded import EmbeddedBus
from bus.image import view_of_image
from bus.interface import Decided
from streaming.batch_writer import feedback_events
from tests.support.engine import decisions_of
from tests.support.operators import OperatorCluster

TOPICS = [f"t{number}" for number in range(6)]
ALIVE = {"want_fence": False, "want_shutdown": False}
FENCED = {"want_fence": True, "want_shutdown": False}


def event(kind: str, time_ms: int, **fields: object) -> bytes:
    return msgspec.json.encode({"kind": kind, "time_ms": time_ms, **fields})


def isr_of_both(topic: str) -> bytes:
    epochs = {"broker": 2, "broker_epoch": 3, "leader_epoch": 1, "partition_epoch": 1}
    return event("alter_isr", 2, topic=topic, partition=0, isr=[2, 1], **epochs)


def leaders(bus: EmbeddedBus) -> list[int]:
    return [partition["leader"] for partition in view_of_image(bus.image())["partitions"]]


def echoed(bus: EmbeddedBus, after_seq: int) -> list[bytes]:
    return feedback_events([Decided(*decided) for decided in decisions_of(bus) if decided[0] > after_seq])


def test_leaders_go_back_to_preferred_replicas_counted_over_all_shards(tmp_path: Path) -> None:
    bus = EmbeddedBus(tmp_path / "bus.db")
    cluster = OperatorCluster(bus)
    log = [
        event("controller_started", 0, controller_id="c", controller_epoch=1),
        *(event("broker_register", 0, broker=b, incarnation=f"i{b}") for b in (1, 2)),
        *(event("broker_heartbeat", 0, broker=b, broker_epoch=b + 1, **ALIVE) for b in (1, 2)),
        *(event("create_topic", 0, topic=topic, assignment={"0": [1, 2]}) for topic in TOPICS),
        event("broker_heartbeat", 1, broker=1, broker_epoch=2, **FENCED),
        event("broker_heartbeat", 2, broker=1, broker_epoch=2, **ALIVE),
        *(isr_of_both(topic) for topic in TOPICS),
        event("tick", 6_000),
    ]
    end = len(log)
    cluster.batch(list(enumerate(log, start=1)))
    assert leaders(bus) == [2] * 6
    (echo,) = echoed(bus, 0)
    assert msgspec.json.decode(echo)["counts"] == {"1": [6, 6]}
    cluster.batch([(end + 1, echo), (end + 2, echo)])
    assert leaders(bus) == [1] * 6
    assert echoed(bus, end) == []
    bus.close()
