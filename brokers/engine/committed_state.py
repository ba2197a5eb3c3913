"""The last committed state as decisions, so that a broker that starts now can act as if it had heard them all."""

from collections.abc import Iterator
from itertools import starmap
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from bus.image import read_image
from bus.interface import Image
from state.acl import with_id
from state.broker import Broker
from state.cluster import Cluster
from state.decisions import (
    AclsDecision,
    AnyDecision,
    BrokerDecision,
    ConfigDecision,
    EntityDecision,
    HighWatermark,
    ProducerIds,
    TopicDecision,
    broker_decision_of,
    leader_and_isr_of,
)
from state.ids import NO_EPOCH
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
    teller = _Teller(held.cluster, image.seq)
    yield from teller.cluster()
    for topic in held.topics:
        yield from teller.topic(topic)


class _Teller:
    def __init__(self, cluster: Cluster, seq: int) -> None:
        self._cluster = cluster
        self._seq = seq
        self._epoch = cluster.controller_epoch
        self._time_ms = cluster.clock_ms

    def cluster(self) -> Iterator[AnyDecision]:
        for broker in self._cluster.brokers.values():
            yield self._broker(broker)
        yield replace(self._config("cluster", None, self._cluster.config), in_force=self._cluster.in_force or UNSET)
        for name, config in self._cluster.broker_config.items():
            yield self._config("broker", name, config)
        if self._cluster.next_producer_id > 0:
            yield ProducerIds(
                **self._common(),
                broker=_NO_BROKER,
                broker_epoch=NO_EPOCH,
                next_producer_id=self._cluster.next_producer_id,
            )
        if self._cluster.acls:
            yield AclsDecision(**self._common(), created=tuple(starmap(with_id, self._cluster.acls.items())))
        for one in self._cluster.entities.values():
            yield EntityDecision(**self._common(), entity_type=one.entity_type, names=one.names, values=one.values)

    def topic(self, topic: Topic) -> Iterator[AnyDecision]:
        yield TopicDecision(
            **self._common(), topic=topic.topic, topic_id=topic.topic_id, state=topic.state.name, config=topic.config
        )
        for partition in topic.partitions:
            if partition.leader_epoch != NO_EPOCH:
                yield leader_and_isr_of(topic.topic, topic.topic_id, partition, **self._common(), to=partition.replicas)
            if partition.high_watermark_epoch != NO_EPOCH:
                yield HighWatermark(
                    **self._common(),
                    topic=topic.topic,
                    partition=partition.partition,
                    leader_epoch=partition.leader_epoch,
                    high_watermark=partition.high_watermark,
                )

    def _common(self) -> dict[str, Any]:
        return {
            "seq": self._seq,
            "controller_epoch": self._epoch,
            "time_ms": self._time_ms,
            "reason": Reason.CONTROLLER_STARTED,
        }

    def _broker(self, broker: Broker) -> BrokerDecision:
        return broker_decision_of(broker, broker.state.name, **self._common())

    def _config(self, entity: str, name: str | None, config: dict[str, str]) -> ConfigDecision:
        return ConfigDecision(**self._common(), entity=entity, name=name, config=config)
