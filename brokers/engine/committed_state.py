"""The last committed state as decisions, so that a broker that starts now can act as if it had heard them all."""

from collections.abc import Iterator
from itertools import starmap
from typing import Any

from msgspec import UNSET

from bus.image import read_image
from bus.interface import Image
from state.acl import with_id
from state.cluster import Cluster
from state.decisions import (
    AclsDecision,
    AnyDecision,
    ConfigDecision,
    EntityDecision,
    HighWatermark,
    LevelDecision,
    ProducerIds,
    TopicDecision,
    broker_decision_of,
    leader_and_isr_of,
)
from state.ids import NO_EPOCH
from state.level import FIRST_LEVEL
from state.partition import Topic
from state.reason import Reason

# The state does not record which broker was given the last block.
_NO_BROKER = -1


def decisions_of(image: Image) -> Iterator[AnyDecision]:
    """Write the committed state as decisions, in the canonical order of their kinds within each topic.

    A high watermark gets the present leader epoch, though it may have been decided in an older one: see
    ``Metadata.high_watermark``. Deletions under way are left out, because the engine repeats them to brokers that come
    back.
    """
    held = read_image(image)
    common = {
        "seq": image.seq,
        "controller_epoch": held.cluster.controller_epoch,
        "time_ms": held.cluster.clock_ms,
        "reason": Reason.CONTROLLER_STARTED,
    }
    yield from _of_cluster(held.cluster, common)
    for topic in held.topics:
        yield from _of_topic(topic, common)


def _of_cluster(cluster: Cluster, common: dict[str, Any]) -> Iterator[AnyDecision]:
    if cluster.level > FIRST_LEVEL:
        yield LevelDecision(**common, level=cluster.level)
    for broker in cluster.brokers.values():
        yield broker_decision_of(broker, broker.state.name, **common)
    in_force = cluster.in_force or UNSET
    yield ConfigDecision(**common, entity="cluster", name=None, config=cluster.config, in_force=in_force)
    for name, config in cluster.broker_config.items():
        yield ConfigDecision(**common, entity="broker", name=name, config=config)
    if cluster.next_producer_id > 0:
        yield ProducerIds(**common, broker=_NO_BROKER, broker_epoch=NO_EPOCH, next_producer_id=cluster.next_producer_id)
    if cluster.acls:
        yield AclsDecision(**common, created=tuple(starmap(with_id, cluster.acls.items())))
    for one in cluster.entities.values():
        yield EntityDecision(**common, entity_type=one.entity_type, names=one.names, values=one.values)


def _of_topic(topic: Topic, common: dict[str, Any]) -> Iterator[AnyDecision]:
    yield TopicDecision(
        **common, topic=topic.topic, topic_id=topic.topic_id, state=topic.state.name, config=topic.config
    )
    for partition in topic.partitions:
        if partition.leader_epoch != NO_EPOCH:
            yield leader_and_isr_of(topic.topic, topic.topic_id, partition, **common, to=partition.replicas)
        if partition.high_watermark_epoch != NO_EPOCH:
            yield HighWatermark(
                **common,
                topic=topic.topic,
                partition=partition.partition,
                leader_epoch=partition.leader_epoch,
                high_watermark=partition.high_watermark,
            )
