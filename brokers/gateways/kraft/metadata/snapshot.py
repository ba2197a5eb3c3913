"""A metadata image as the records that make it, in an order that depends on the image alone."""

from collections.abc import Iterable, Iterator

from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.entities import acl_record, changes_of
from brokers.gateways.kraft.metadata.image import NO_PRODUCER_ID, MetadataImage
from brokers.gateways.kraft.metadata.partition_bytes import id_bytes, partition_record
from brokers.gateways.kraft.metadata.registrations import registered
from brokers.gateways.kraft.metadata.topics import config_record, feature_record, topic_record
from brokers.gateways.kraft.metadata.voters import voter_records
from brokers.wire.metadata.record_frame import Record, encode_record
from state.entity import VOTERS_ID
from state.features import METADATA_VERSION, USUAL_METADATA_VERSION

PRODUCER_IDS_VERSION = 0
_NO_BROKER = -1


def records_of(image: MetadataImage) -> Iterator[bytes]:
    """Yield an image's records, encoded: the metadata version first, because it says how to read the others.

    Partitions that wait for their first leader are not written.
    """
    for name in sorted(image.features, key=lambda feature: (feature != METADATA_VERSION, feature)):
        yield encode_record(*feature_record(name, image.features[name]))
    level = image.features.get(METADATA_VERSION, USUAL_METADATA_VERSION)
    for _, broker in sorted(image.brokers.items()):
        yield encode_record(*registered(broker, level))
    for name in sorted(image.topic_ids):
        topic = image.topics[image.topic_ids[name]]
        yield encode_record(*topic_record(topic.name, topic.topic_id))
        topic_id = id_bytes(topic.topic_id)
        for number, state in topic.partitions.in_order():
            yield partition_record(topic_id, number, state)
    for resource in sorted(image.configs):
        for name, value in sorted(image.configs[resource].items()):
            yield encode_record(*config_record(resource, name, value))
    if image.next_producer_id != NO_PRODUCER_ID:
        yield encode_record(*producer_ids(_NO_BROKER, _NO_BROKER, image.next_producer_id))
    for acl_id in sorted(image.acls):
        yield encode_record(*acl_record(acl_id, image.acls[acl_id]))
    for entity_id in sorted({*image.entities} - {VOTERS_ID}):
        for record in changes_of(image.entities[entity_id], {}):
            yield encode_record(*record)


def control_records_of(image: MetadataImage) -> list[Record]:
    """Return the control records of an image: the quorum's voters, if the log has them."""
    voters = image.entities.get(VOTERS_ID)
    return [] if voters is None else list(voter_records({}, voters.values))


def producer_ids(broker: int, broker_epoch: int, next_producer_id: int) -> Record:
    """Return the record after which all producer ids below ``next_producer_id`` are taken."""
    values = {"BrokerId": broker, "BrokerEpoch": broker_epoch, "NextProducerId": next_producer_id}
    return Record("ProducerIdsRecord", PRODUCER_IDS_VERSION, values)


def image_of(records: Iterable[Record], quorum_epoch: int) -> MetadataImage:
    """Build an image from the records of a snapshot of ``quorum_epoch``. Raises ``ReplayError``."""
    draft = MetadataDraft(MetadataImage(quorum_epoch=quorum_epoch))
    for record in records:
        draft.replay(record)
    return draft.image()
