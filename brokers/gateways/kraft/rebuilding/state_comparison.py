"""The comparison of a metadata log with the engine's state, which shows whether the log lacks a decision."""

from collections.abc import Iterator

from msgspec.structs import replace

from brokers.engine.committed_state import decisions_of
from brokers.gateways.kraft.metadata.image import MetadataImage, Registration
from brokers.gateways.kraft.metadata.translate import translate
from bus.image import read_image
from bus.interface import Image
from state.cluster import Cluster
from state.ids import NO_LEADER

_SHOWN = 3


def differences(image: MetadataImage, state: Image) -> str:
    """Name some things in which an image and the committed state differ; an empty string if they agree."""
    decisions = list(decisions_of(state))
    committed = translate(MetadataImage(), decisions).image if decisions else MetadataImage()
    found = [
        *_quorum(image, read_image(state).cluster),
        *_brokers(image, committed),
        *_topics(image, committed),
        *_configs(image, committed),
    ]
    if image.next_producer_id != committed.next_producer_id:
        found.append("producer ids")
    if image.acls != committed.acls:
        found.append("ACLs")
    if any(image.features.get(name, 0) != level for name, level in committed.features.items()):
        found.append("features")
    if image.entities != committed.entities:
        found.append("metadata entities")
    return ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")


def _quorum(image: MetadataImage, cluster: Cluster) -> Iterator[str]:
    quorum = cluster.quorum
    if quorum.voter != NO_LEADER and image.quorum_epoch != quorum.quorum_epoch:
        yield f"quorum epoch {quorum.quorum_epoch}"


def _brokers(image: MetadataImage, committed: MetadataImage) -> Iterator[str]:
    for broker in sorted({*image.brokers, *committed.brokers}):
        ours, theirs = image.brokers.get(broker), committed.brokers.get(broker)
        if ours is None or theirs is None or _comparable(ours) != _comparable(theirs):
            yield f"broker {broker}"


def _comparable(broker: Registration) -> Registration:
    # The state does not record that a fenced broker was in a controlled shutdown.
    return replace(broker, in_controlled_shutdown=False)


def _topics(image: MetadataImage, committed: MetadataImage) -> Iterator[str]:
    for topic_id in sorted({*image.topics, *committed.topics}):
        ours, theirs = image.topics.get(topic_id), committed.topics.get(topic_id)
        if ours is None or theirs is None:
            yield f"topic {(ours or theirs or image.topics[topic_id]).name}"
            continue
        for number in sorted(ours.partitions.keys() | theirs.partitions.keys()):
            one, other = ours.partitions.get(number), theirs.partitions.get(number)
            if one is None or other is None or _decided_state(one) != _decided_state(other):
                yield f"partition {ours.name}-{number}"


def _decided_state(partition: object) -> tuple[object, ...]:
    # Only the log knows all directories. The state knows a directory only if a broker with several has named it.
    names = ("replicas", "isr", "leader", "leader_epoch", "partition_epoch")
    return tuple(getattr(partition, name) for name in names)


def _configs(image: MetadataImage, committed: MetadataImage) -> Iterator[str]:
    for resource in sorted({*image.configs, *committed.configs}):
        if image.configs.get(resource, {}) != committed.configs.get(resource, {}):
            yield f"settings of {resource[1] or 'all brokers'}"
