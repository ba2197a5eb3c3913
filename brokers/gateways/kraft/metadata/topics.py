"""From the decisions on topics and settings to the records that tell of them."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import UNSET

from brokers.gateways.kraft.metadata.draft import MetadataDraft
from brokers.gateways.kraft.metadata.image import ALL_BROKERS, BROKER_RESOURCE, TOPIC_RESOURCE
from brokers.gateways.kraft.record_frame import Record
from brokers.wire.plain import STRING_BYTES_MAX
from state.decisions import ConfigDecision, LeaderAndIsr, TopicDecision

TOPIC_VERSION = 0
REMOVE_TOPIC_VERSION = 0
CONFIG_VERSION = 0
_BEING_DELETED = ("deleting", "deleted", "ineligible")


def removed_topics(
    draft: MetadataDraft, decisions: Iterable[TopicDecision], partitions: Iterable[LeaderAndIsr]
) -> Iterator[Record]:
    """Remove the topics whose deletion begins: brokers delete a topic when its record comes.

    ``ineligible`` is said of two kinds of topics: of those that a broker which is away has yet to delete,
    and of those that live on until a reassignment ends. ``partitions`` are the same event's decisions.
    """
    told = {(decision.topic_id, decision.partition): decision for decision in partitions}
    for decision in decisions:
        topic = draft.topics.held.get(decision.topic_id)
        if topic is None or decision.state not in _BEING_DELETED:
            continue
        held = draft.partitions(topic.topic_id)
        states = [told.get((topic.topic_id, number), state) for number, state in held.items()]
        waits = any(state.adding_replicas or state.removing_replicas for state in states)
        if not (decision.state == "ineligible" and waits):
            yield Record("RemoveTopicRecord", REMOVE_TOPIC_VERSION, {"TopicId": topic.topic_id})


def created_topics(draft: MetadataDraft, decisions: Iterable[TopicDecision]) -> Iterator[Record]:
    """Tell of the topics that came, with their settings."""
    for decision in decisions:
        if decision.state == "created":
            if decision.topic_id not in draft.topics.held:
                yield topic_record(decision.topic, decision.topic_id)
            yield from _differences(draft, (TOPIC_RESOURCE, decision.topic), decision.config)


def config_records(draft: MetadataDraft, decision: ConfigDecision) -> Iterator[Record]:
    """Tell which settings of an entity are others than before; those of a topic that is gone went with it.

    All brokers are told what is in force of what they act on, and the cluster's dynamic settings.
    """
    match decision.entity:
        case "cluster":
            in_force = {} if decision.in_force is UNSET else decision.in_force
            yield from _differences(draft, (BROKER_RESOURCE, ALL_BROKERS), {**decision.config, **in_force})
        case "broker":
            yield from _differences(draft, (BROKER_RESOURCE, decision.name or ""), decision.config)
        case "topic" if (name := decision.name or "") in draft.topic_ids.held:
            yield from _differences(draft, (TOPIC_RESOURCE, name), decision.config)


def topic_record(name: str, topic_id: str) -> Record:
    return Record("TopicRecord", TOPIC_VERSION, {"Name": name, "TopicId": topic_id})


def config_record(resource: tuple[int, str], name: str, value: str | None) -> Record:
    """Write one setting; None removes it."""
    values = {"ResourceType": resource[0], "ResourceName": resource[1], "Name": name, "Value": value}
    return Record("ConfigRecord", CONFIG_VERSION, values)


def _differences(draft: MetadataDraft, resource: tuple[int, str], given: Mapping[str, str]) -> Iterator[Record]:
    # A value that is longer than Kafka's strings may be is none for its brokers.
    config = {name: value for name, value in given.items() if len(value.encode()) <= STRING_BYTES_MAX}
    held = draft.configs.held.get(resource, {})
    for name in sorted({*held, *config}):
        if config.get(name) != held.get(name):
            yield config_record(resource, name, config.get(name))
