"""A partition whose leader writes its ISR into ZooKeeper itself."""

from typing import Any

from tests.support.world import World, claimed


def led(**config: str) -> World:
    """A world with one partition on brokers 1, 2 and 3, which 1 leads in epoch 0."""
    world = claimed(1, 2, 3)
    world.publish("create_topic", topic="t", assignment={"0": [1, 2, 3]}, config=config)
    return world


def write(world: World, *isr: int, leader_epoch: int = 0, partition_epoch: int = 0, **fields: Any) -> str:
    given = {"topic": "t", "partition": 0, "broker": isr[0], "isr": isr, "request_id": "q"}
    world.publish("isr_written", **given | {"leader_epoch": leader_epoch, "partition_epoch": partition_epoch} | fields)
    return world.error
