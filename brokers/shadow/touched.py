"""What an operation changed, collected while its records are applied, as the rows of an ``observed`` event."""

from collections import Counter

from brokers.shadow.cluster_image import BROKER_RESOURCE, TOPIC_RESOURCE, Broker, ClusterImage, Partition
from brokers.shadow.source import UNKNOWN_RECORD
from brokers.wire.metadata.record_frame import Record
from state.observed_events import (
    CountedRecords,
    ObservedBroker,
    ObservedController,
    ObservedFeature,
    ObservedPartition,
    ObservedSetting,
    ObservedTopic,
    Results,
)
from state.secrets import shown_settings

_RESOURCES = {TOPIC_RESOURCE: "topic", BROKER_RESOURCE: "broker", 8: "broker_logger", 16: "client_metrics", 32: "group"}
# None of their settings is secret.
_WITHOUT_SECRETS = frozenset({"topic", "client_metrics", "group", "broker_logger"})


class Touched:
    """The rows of one operation. The last one about the same thing counts."""

    def __init__(self) -> None:
        self.brokers: dict[int, ObservedBroker] = {}
        self.unregistered: dict[int, None] = {}
        self.topics: dict[str, ObservedTopic] = {}
        self.deleted: dict[str, ObservedTopic] = {}
        self.partitions: dict[tuple[str, int], ObservedPartition] = {}
        self.settings: dict[tuple[str, str, str], ObservedSetting] = {}
        self.features: dict[str, ObservedFeature] = {}
        self.controller: ObservedController | None = None
        self.counted: Counter[str] = Counter()

    def broker(self, broker: Broker) -> None:
        self.brokers[broker.broker] = ObservedBroker(
            broker=broker.broker,
            broker_epoch=broker.broker_epoch,
            incarnation=broker.incarnation,
            rack=broker.rack,
            log_dirs=broker.log_dirs,
            cordoned_log_dirs=broker.cordoned_log_dirs,
            fenced=broker.is_fenced,
            shutting_down=broker.is_shutting_down,
        )

    def topic(self, name: str, topic_id: str) -> None:
        self.topics[topic_id] = ObservedTopic(topic=name, topic_id=topic_id)

    def deleted_topic(self, name: str, topic_id: str) -> None:
        self.deleted[topic_id] = ObservedTopic(topic=name, topic_id=topic_id)

    def partition(self, topic: str, number: int, held: Partition) -> None:
        self.partitions[topic, number] = ObservedPartition(
            topic=topic,
            partition=number,
            replicas=held.replicas,
            isr=held.isr,
            leader=held.leader,
            leader_epoch=held.leader_epoch,
            partition_epoch=held.partition_epoch,
            leader_recovery_state="RECOVERING" if held.is_recovering else "RECOVERED",
            adding_replicas=held.adding,
            removing_replicas=held.removing,
            directories=held.directories,
            elr=held.elr,
            last_known_elr=held.last_known_elr,
        )

    def setting(self, resource_type: int, name: str, key: str, value: str | None) -> None:
        """Note a setting. The value of one that may be secret is not kept."""
        kind = _RESOURCES.get(resource_type, f"resource_{resource_type}")
        if kind == "broker" and name == "":
            kind = "cluster"
        shown = value if kind in _WITHOUT_SECRETS else shown_settings(kind, {key: value})[key]
        self.settings[kind, name, key] = ObservedSetting(entity_type=kind, entity=name, key=key, value=shown)

    def feature(self, name: str, level: int) -> None:
        self.features[name] = ObservedFeature(name=name, level=level)

    def leads(self, controller: int, epoch: int) -> None:
        self.controller = ObservedController(controller=controller, epoch=epoch)

    def count(self, record: Record) -> None:
        """Note a record of which only the number is told."""
        known = record.name != UNKNOWN_RECORD
        self.counted[record.name if known else f"{UNKNOWN_RECORD} {record.values['ApiKey']}"] += 1

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not any(vars(self).values())

    def results(self) -> Results:
        """Return the rows of an event."""
        return Results(
            brokers=tuple(self.brokers.values()),
            unregistered_brokers=tuple(self.unregistered),
            topics=tuple(self.topics.values()),
            deleted_topics=tuple(self.deleted.values()),
            partitions=tuple(self.partitions.values()),
            settings=tuple(self.settings.values()),
            features=tuple(self.features.values()),
            controller=self.controller,
            other=tuple(CountedRecords(record=name, count=count) for name, count in self.counted.items()),
        )


def difference(before: ClusterImage, after: ClusterImage) -> Touched:
    """Return what leads from one image to another. The difference from an empty image is all that a cluster has."""
    touched = Touched()
    for number, broker in sorted(after.brokers.items()):
        if before.brokers.get(number) != broker:
            touched.broker(broker)
    touched.unregistered = dict.fromkeys(sorted(before.brokers.keys() - after.brokers.keys()))
    for topic_id in sorted(before.topics.keys() - after.topics.keys(), key=before.topics.__getitem__):
        touched.deleted_topic(before.topics[topic_id], topic_id)
    for topic_id, name in sorted(after.topics.items(), key=lambda item: item[1]):
        if topic_id not in before.topics:
            touched.topic(name, topic_id)
        held = before.partitions.get(topic_id, {})
        for number, partition in sorted(after.partitions[topic_id].items()):
            if held.get(number) != partition:
                touched.partition(name, number, partition)
    _settings_between(before, after, touched)
    for feature in sorted(before.features.keys() | after.features.keys()):
        level = after.features.get(feature, 0)
        if before.features.get(feature, 0) != level:
            touched.feature(feature, level)
    for kind, key in sorted(before.others.keys() | after.others.keys(), key=repr):
        if before.others.get((kind, key)) != after.others.get((kind, key)):
            touched.counted[kind] += 1
    return touched


def _settings_between(before: ClusterImage, after: ClusterImage, touched: Touched) -> None:
    names = set(after.topics.values())
    for resource in sorted(before.settings.keys() | after.settings.keys()):
        held, now = before.settings.get(resource, {}), after.settings.get(resource, {})
        if resource[0] == TOPIC_RESOURCE and not now and resource[1] not in names:
            # They went with their topic.
            continue
        for key in sorted(held.keys() | now.keys()):
            if held.get(key) != now.get(key):
                touched.setting(*resource, key, now.get(key))
