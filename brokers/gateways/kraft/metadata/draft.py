"""A metadata image while records are applied to it, as a broker applies them."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from brokers.gateways.kraft.metadata.acl_numbers import acl_of
from brokers.gateways.kraft.metadata.entity_values import Names, quota_of, scram_of, token_of
from brokers.gateways.kraft.metadata.image import (
    TOPIC_RESOURCE,
    MetadataImage,
    PartitionState,
    Registration,
    TopicState,
    Values,
)
from brokers.gateways.kraft.metadata.partition_table import OpenPartitions, Partitions
from brokers.gateways.kraft.metadata.voters import entity_of
from brokers.wire.metadata.record_frame import Record
from state.entity import VOTERS_ID, Entity, EntityType, entity_id_of
from state.features import ELIGIBLE_SINCE, METADATA_VERSION, USUAL_METADATA_VERSION

LEADER_UNCHANGED = -2
RECOVERY_UNCHANGED = -1


class ReplayError(Exception):
    """A record does not follow from the records before it."""


class MetadataDraft:
    """The result of replaying records in order (``MetadataDelta``). The image that it began with stays unchanged.

    Records have every field of their schema, as decoded records do. A field may be left out if its default means that
    nothing changed.
    """

    def __init__(self, image: MetadataImage) -> None:
        self.features = image.features
        self.brokers = image.brokers
        self.topics = image.topics
        self.topic_ids = image.topic_ids
        self.configs = image.configs
        self.next_producer_id = image.next_producer_id
        self.quorum_epoch = image.quorum_epoch
        self.acls = image.acls
        self.entities = image.entities
        self._opened: dict[str, OpenPartitions] = {}

    @property
    def knows_eligible(self) -> bool:
        """Whether the log's metadata version has eligible leader replicas."""
        return self.features.get(METADATA_VERSION, USUAL_METADATA_VERSION) >= ELIGIBLE_SINCE

    def partitions(self, topic_id: str) -> Partitions | OpenPartitions:
        """Return the partitions of a topic that exists, to be read."""
        return self._opened.get(topic_id) or self.topics[topic_id].partitions

    def opened(self, topic_id: str) -> OpenPartitions:
        """Return the partitions of a topic that exists, to be changed."""
        opened = self._opened.get(topic_id)
        if opened is None:
            opened = self._opened[topic_id] = self.topics[topic_id].partitions.opened()
        return opened

    def image(self) -> MetadataImage:
        """Return the resulting image, which later records do not change."""
        opened, self._opened = self._opened, {}
        self.topics = self.topics.update(
            {
                topic_id: TopicState(self.topics[topic_id].name, topic_id, partitions.closed())
                for topic_id, partitions in opened.items()
            }
        )
        return MetadataImage(
            self.features,
            self.brokers,
            self.topics,
            self.topic_ids,
            self.configs,
            self.next_producer_id,
            self.quorum_epoch,
            self.acls,
            self.entities,
        )

    def replay(self, record: Record) -> None:
        """Apply the next record. Raises ``ReplayError`` if it does not follow from the records before it."""
        values = record.values
        match record.name:
            case "FeatureLevelRecord":
                self.features = self.features.set(values["Name"], values["FeatureLevel"])
            case "RegisterBrokerRecord":
                self.brokers = self.brokers.set(values["BrokerId"], registration_of(values))
            case "BrokerRegistrationChangeRecord":
                changed = registration_after(self._broker(values), values)
                self.brokers = self.brokers.set(changed.broker, changed)
            case "UnregisterBrokerRecord":
                self.brokers = self.brokers.delete(self._broker(values).broker)
            case "TopicRecord":
                self._add_topic(values["Name"], values["TopicId"])
            case "RemoveTopicRecord":
                self._remove_topic(values)
            case "PartitionRecord":
                self._set_partition(values, partition_of(values))
            case "PartitionChangeRecord":
                self._change_partition(values)
            case "ConfigRecord":
                self._set_config(values)
            case "ProducerIdsRecord":
                self.next_producer_id = values["NextProducerId"]
            case "BeginTransactionRecord" | "EndTransactionRecord" | "NoOpRecord" | "KRaftVersionRecord":
                pass
            case _:
                self._change_entities(record)

    def _broker(self, values: Values) -> Registration:
        held: Registration | None = self.brokers.get(values["BrokerId"])
        if held is None or held.broker_epoch != values["BrokerEpoch"]:
            raise ReplayError(f"broker {values['BrokerId']} is not registered with epoch {values['BrokerEpoch']}")
        return held

    def _topic(self, values: Values) -> TopicState:
        held: TopicState | None = self.topics.get(values["TopicId"])
        if held is None:
            raise ReplayError(f"there is no topic with id {values['TopicId']}")
        return held

    def _add_topic(self, name: str, topic_id: str) -> None:
        if name in self.topic_ids or topic_id in self.topics:
            raise ReplayError(f"topic {name} with id {topic_id} exists already, by its name or by its id")
        self.topics = self.topics.set(topic_id, TopicState(name, topic_id, Partitions()))
        self.topic_ids = self.topic_ids.set(name, topic_id)

    def _remove_topic(self, values: Values) -> None:
        topic = self._topic(values)
        self.topics = self.topics.delete(topic.topic_id)
        self.topic_ids = self.topic_ids.delete(topic.name)
        self._opened.pop(topic.topic_id, None)
        if (TOPIC_RESOURCE, topic.name) in self.configs:
            self.configs = self.configs.delete((TOPIC_RESOURCE, topic.name))

    def _set_partition(self, values: Values, state: PartitionState) -> None:
        if (number := values["PartitionId"]) < 0:
            raise ReplayError(f"partition {number} of topic {values['TopicId']} cannot be")
        self.opened(self._topic(values).topic_id).set(number, state)

    def _change_partition(self, values: Values) -> None:
        held = self.partitions(self._topic(values).topic_id).get(values["PartitionId"])
        if held is None:
            raise ReplayError(f"topic {values['TopicId']} has no partition {values['PartitionId']}")
        self._set_partition(values, partition_after(held, values))

    def _set_config(self, values: Values) -> None:
        key = (values["ResourceType"], values["ResourceName"])
        config = dict(self.configs.get(key, {}))
        if values["Value"] is None:
            config.pop(values["Name"], None)
        else:
            config[values["Name"]] = values["Value"]
        if config:
            self.configs = self.configs.set(key, config)
        elif key in self.configs:
            self.configs = self.configs.delete(key)

    def _change_entities(self, record: Record) -> None:
        match record.name:
            case "VotersRecord":
                self.entities = self.entities.set(VOTERS_ID, entity_of(record.values))
            case "AccessControlEntryRecord":
                self._add_acl(record.values)
            case "RemoveAccessControlEntryRecord":
                self._remove_acl(record.values)
            case "ClientQuotaRecord":
                self._change_entity(*quota_of(record.values))
            case "DelegationTokenRecord" | "RemoveDelegationTokenRecord":
                self._change_entity(*token_of(record.values))
            case "UserScramCredentialRecord" | "RemoveUserScramCredentialRecord":
                try:
                    self._change_entity(*scram_of(record.values))
                except ValueError as error:
                    raise ReplayError(str(error)) from error
            case _:
                raise ReplayError(f"a {record.name} has no place in this log")

    def _change_entity(self, entity_type: EntityType, names: Names, changes: Mapping[str, str | None]) -> None:
        entity_id = entity_id_of(entity_type, names)
        held = self.entities.get(entity_id)
        merged = {**(held.values if held else {}), **changes}
        values = {key: value for key in sorted(merged) if (value := merged[key]) is not None}
        if values:
            entity = Entity(entity_type=entity_type, names=dict(sorted(names.items())), values=values)
            self.entities = self.entities.set(entity_id, entity)
        elif held is not None:
            self.entities = self.entities.delete(entity_id)

    def _add_acl(self, values: Values) -> None:
        if values["Id"] in self.acls:
            raise ReplayError(f"there is an ACL with the id {values['Id']} already")
        try:
            self.acls = self.acls.set(values["Id"], acl_of(values))
        except ValueError as error:
            raise ReplayError(f"ACL {values['Id']}: {error}") from error

    def _remove_acl(self, values: Values) -> None:
        if values["Id"] not in self.acls:
            raise ReplayError(f"there is no ACL with the id {values['Id']}")
        self.acls = self.acls.delete(values["Id"])


def registration_of(values: Values) -> Registration:
    """Read a whole registration out of a RegisterBrokerRecord."""
    return Registration(
        values["BrokerId"],
        values["BrokerEpoch"],
        values["IncarnationId"],
        tuple([(e["Name"], e["Host"], e["Port"], e["SecurityProtocol"]) for e in values["EndPoints"]]),
        tuple([(f["Name"], f["MinSupportedVersion"], f["MaxSupportedVersion"]) for f in values["Features"]]),
        values["Rack"],
        tuple(values["LogDirs"]),
        values["Fenced"],
        values["InControlledShutdown"],
        tuple(values.get("CordonedLogDirs") or ()),
    )


def registration_after(held: Registration, values: Values) -> Registration:
    """Apply a BrokerRegistrationChangeRecord (``BrokerRegistration.cloneWith``)."""
    cordoned = values.get("CordonedLogDirs")
    return replace(
        held,
        fenced={1: True, -1: False}.get(values.get("Fenced", 0), held.fenced),
        in_controlled_shutdown=held.in_controlled_shutdown or values.get("InControlledShutdown", 0) == 1,
        log_dirs=tuple(values.get("LogDirs") or held.log_dirs),
        cordoned_log_dirs=held.cordoned_log_dirs if cordoned is None else tuple(cordoned),
    )


def partition_of(values: Values) -> PartitionState:
    """Read a whole partition out of a PartitionRecord."""
    return PartitionState(
        tuple(values["Replicas"]),
        tuple(values["Directories"]),
        tuple(values["Isr"]),
        tuple(values["RemovingReplicas"]),
        tuple(values["AddingReplicas"]),
        values["Leader"],
        values["LeaderRecoveryState"],
        values["LeaderEpoch"],
        values["PartitionEpoch"],
        tuple(values.get("EligibleLeaderReplicas") or ()),
        tuple(values.get("LastKnownElr") or ()),
    )


def partition_after(held: PartitionState, values: Values) -> PartitionState:
    """Apply a PartitionChangeRecord (``PartitionRegistration.merge``).

    A record that names a leader raises the leader epoch, even if it is the present leader. Every record raises the
    partition epoch. Neither epoch is in the record.
    """

    def ids(name: str, former: tuple[Any, ...]) -> tuple[Any, ...]:
        given = values.get(name)
        return former if given is None else tuple(given)

    leader, recovery = values.get("Leader", LEADER_UNCHANGED), values.get("LeaderRecoveryState", RECOVERY_UNCHANGED)
    return PartitionState(
        ids("Replicas", held.replicas),
        ids("Directories", held.directories),
        ids("Isr", held.isr),
        ids("RemovingReplicas", held.removing_replicas),
        ids("AddingReplicas", held.adding_replicas),
        held.leader if leader == LEADER_UNCHANGED else leader,
        held.leader_recovery_state if recovery == RECOVERY_UNCHANGED else recovery,
        held.leader_epoch + (leader != LEADER_UNCHANGED),
        held.partition_epoch + 1,
        ids("EligibleLeaderReplicas", held.elr),
        ids("LastKnownElr", held.last_known_elr),
    )
