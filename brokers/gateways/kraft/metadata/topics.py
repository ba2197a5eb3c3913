"""Translate decisions about topics and settings into metadata records."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from msgspec import UNSET

from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.image import ALL_BROKERS, BROKER_RESOURCE, TOPIC_RESOURCE
from brokers.gateways.kraft.metadata.partitions import DecidedPartitions
from brokers.wire.metadata.record_frame import Record
from brokers.wire.plain import STRING_BYTES_MAX
from state.decisions import ConfigDecision, TopicDecision
from state.features import ELIGIBLE_VERSION

TOPIC_VERSION = 0
REMOVE_TOPIC_VERSION = 0
CONFIG_VERSION = 0
FEATURE_VERSION = 0
_BEING_DELETED = ("deleting", "deleted", "ineligible")


def removed_topics(
    draft: MetadataDraft, decisions: Iterable[TopicDecision], partitions: Sequence[DecidedPartitions]
) -> Iterator[Record]:
    """Yield the removal of topics whose deletion begins; brokers delete a topic as soon as they read it.

    The state ``ineligible`` has two meanings: a broker that is away has yet to delete the topic, or the topic lives on
    until a reassignment ends. ``partitions``, the decisions of the same event, tell them apart.
    """
    for decision in decisions:
        topic_id = decision.topic_id
        if topic_id not in draft.topics or decision.state not in _BEING_DELETED:
            continue
        if decision.state != "ineligible" or not _is_reassigned(draft, topic_id, partitions):
            yield Record("RemoveTopicRecord", REMOVE_TOPIC_VERSION, {"TopicId": topic_id})


def _is_reassigned(draft: MetadataDraft, topic_id: str, partitions: Sequence[DecidedPartitions]) -> bool:
    changed = {
        number: bool(adding or removing)
        for decided in partitions
        if decided.topic_id == topic_id
        for number, _, _, (_, _, _, _, adding, removing, *_) in decided.rows
    }
    return any(
        changed.get(number, bool(state.adding_replicas or state.removing_replicas))
        for number, state in draft.partitions(topic_id).in_order()
    )


def created_topics(draft: MetadataDraft, decisions: Iterable[TopicDecision]) -> Iterator[Record]:
    """Yield the new topics with their settings."""
    for decision in decisions:
        if decision.state == "created":
            if decision.topic_id not in draft.topics:
                yield topic_record(decision.topic, decision.topic_id)
            yield from _differences(draft, (TOPIC_RESOURCE, decision.topic), decision.config)


def config_records(draft: MetadataDraft, decision: ConfigDecision) -> Iterator[Record]:
    """Yield the settings of an entity that were changed or set again. Settings of a removed topic are already gone.

    The cluster's dynamic settings go to all brokers, and so do the values in force of the settings that brokers act on.
    """
    match decision.entity:
        case "cluster":
            in_force = {} if decision.in_force is UNSET else decision.in_force
            given = {**decision.config, **in_force}
            given.pop(ELIGIBLE_VERSION, None)
            if ELIGIBLE_VERSION in in_force and draft.knows_eligible:
                yield from _eligible_level(draft, int(in_force[ELIGIBLE_VERSION]))
            yield from _differences(draft, (BROKER_RESOURCE, ALL_BROKERS), given, _set_again(decision))
        case "broker":
            resource = (BROKER_RESOURCE, decision.name or "")
            yield from _differences(draft, resource, decision.config, _set_again(decision))
        case "topic" if (name := decision.name or "") in draft.topic_ids:
            yield from _differences(draft, (TOPIC_RESOURCE, name), decision.config)


def _eligible_level(draft: MetadataDraft, level: int) -> Iterator[Record]:
    """Yield the level of the feature that the rules know as a setting, if it changes."""
    if draft.features.get(ELIGIBLE_VERSION, 0) != level:
        yield feature_record(ELIGIBLE_VERSION, level)


def feature_record(name: str, level: int) -> Record:
    """Return the record of a feature's level."""
    return Record("FeatureLevelRecord", FEATURE_VERSION, {"Name": name, "FeatureLevel": level})


def topic_record(name: str, topic_id: str) -> Record:
    """Return the record of a new topic."""
    return Record("TopicRecord", TOPIC_VERSION, {"Name": name, "TopicId": topic_id})


def config_record(resource: tuple[int, str], name: str, value: str | None) -> Record:
    """Return the record of one setting; None removes it."""
    values = {"ResourceType": resource[0], "ResourceName": resource[1], "Name": name, "Value": value}
    return Record("ConfigRecord", CONFIG_VERSION, values)


def _set_again(decision: ConfigDecision) -> frozenset[str]:
    return frozenset() if decision.set_again is UNSET else frozenset(decision.set_again)


def _differences(
    draft: MetadataDraft, resource: tuple[int, str], given: Mapping[str, str], again: Set[str] = frozenset()
) -> Iterator[Record]:
    # Brokers cannot read a value longer than Kafka's strings, so it is left out.
    config = {name: value for name, value in given.items() if len(value.encode()) <= STRING_BYTES_MAX}
    held = draft.configs.get(resource, {})
    for name in sorted({*held, *config}):
        if config.get(name) != held.get(name) or (name in again and name in config):
            yield config_record(resource, name, config.get(name))
