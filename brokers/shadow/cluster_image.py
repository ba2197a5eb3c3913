"""The cluster as its metadata log says at one offset (Kafka's ``MetadataImage``).

The values are as records have them: the ids of topics, incarnations and log directories are Kafka's uuids as text.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from brokers.wire.metadata.record_frame import Record
from brokers.wire.schema import Values

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
# PartitionChangeRecord.Leader
LEADER_UNCHANGED = -2
# BrokerRegistrationChangeRecord.Fenced
_FENCED, _UNFENCED = 1, -1
_RECOVERING, _RECOVERY_UNCHANGED = 1, -1


class Partition(NamedTuple):
    """A partition (``PartitionRegistration``)."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    is_recovering: bool = False
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    # The log directory of each replica; empty if the metadata version has none.
    directories: tuple[str, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


class Broker(NamedTuple):
    """A broker's registration (``BrokerRegistration``)."""

    broker: int
    broker_epoch: int
    incarnation: str
    rack: str | None
    log_dirs: tuple[str, ...]
    is_fenced: bool
    is_shutting_down: bool
    # Those that are to get no new replicas (KIP-1066).
    cordoned_log_dirs: tuple[str, ...] = ()


class MisfitError(Exception):
    """A record does not follow from those before it, because some of them were missing or damaged."""


class ClusterImage:
    """What all records together say."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.brokers: dict[int, Broker] = {}
        # Names by id.
        self.topics: dict[str, str] = {}
        # By topic id, then by number.
        self.partitions: dict[str, dict[int, Partition]] = {}
        # By type and name of the resource.
        self.settings: dict[tuple[int, str], dict[str, str]] = {}
        self.features: dict[str, int] = {}
        # ACLs, quotas, credentials, tokens, controllers, producer ids: by kind and identity, and without secrets.
        self.others: dict[tuple[str, Any], Any] = {}
        for record in records:
            self.apply(record)

    def apply(self, record: Record) -> None:
        """Apply the next record. One of an unknown kind changes nothing. Raises ``MisfitError``."""
        values = record.values
        try:
            self._apply(record.name, values)
        except KeyError as error:
            raise MisfitError(f"{record.name} is about {error}, which is not known") from error

    def _apply(self, name: str, values: Values) -> None:
        match name:
            case "PartitionChangeRecord":
                held = self.partitions[values["TopicId"]]
                held[values["PartitionId"]] = changed(held[values["PartitionId"]], values)
            case "PartitionRecord":
                self.partitions[values["TopicId"]][values["PartitionId"]] = _partition(values)
            case "TopicRecord":
                self.topics[values["TopicId"]] = values["Name"]
                self.partitions.setdefault(values["TopicId"], {})
            case "RemoveTopicRecord":
                del self.partitions[values["TopicId"]]
                self.settings.pop((TOPIC_RESOURCE, self.topics.pop(values["TopicId"])), None)
            case "ConfigRecord":
                self._set(values)
            case "ClearElrRecord":
                for topic_id, number in self.with_elr(values["TopicName"]):
                    held = self.partitions[topic_id]
                    raised = held[number].partition_epoch + 1
                    held[number] = held[number]._replace(elr=(), last_known_elr=(), partition_epoch=raised)
            case "FeatureLevelRecord":
                self._set_feature(values["Name"], values["FeatureLevel"])
            case _:
                self._apply_to_nodes(name, values)

    def _apply_to_nodes(self, name: str, values: Values) -> None:
        match name:
            case "RegisterBrokerRecord":
                self.brokers[values["BrokerId"]] = _broker(values)
            case "BrokerRegistrationChangeRecord":
                broker, cordoned = self.brokers[values["BrokerId"]], values["CordonedLogDirs"]
                self.brokers[broker.broker] = broker._replace(
                    is_fenced={_FENCED: True, _UNFENCED: False}.get(values["Fenced"], broker.is_fenced),
                    is_shutting_down=broker.is_shutting_down or values["InControlledShutdown"] == 1,
                    log_dirs=tuple(values["LogDirs"]) or broker.log_dirs,
                    cordoned_log_dirs=broker.cordoned_log_dirs if cordoned is None else tuple(cordoned),
                )
            case "FenceBrokerRecord" | "UnfenceBrokerRecord":
                self.brokers[values["Id"]] = self.brokers[values["Id"]]._replace(is_fenced=name == "FenceBrokerRecord")
            case "UnregisterBrokerRecord":
                del self.brokers[values["BrokerId"]]
            case _:
                self._apply_to_others(name, values)

    def _apply_to_others(self, name: str, values: Values) -> None:
        match name:
            case "AccessControlEntryRecord":
                self.others["acl", values["Id"]] = {key: value for key, value in values.items() if key != "Id"}
            case "RemoveAccessControlEntryRecord":
                del self.others["acl", values["Id"]]
            case "ClientQuotaRecord":
                entity = tuple((one["EntityType"], one["EntityName"]) for one in values["Entity"])
                if values["Remove"]:
                    self.others.pop(("quota", (entity, values["Key"])), None)
                else:
                    self.others["quota", (entity, values["Key"])] = values["Value"]
            case "UserScramCredentialRecord":
                self.others["scram", (values["Name"], values["Mechanism"])] = values["Iterations"]
            case "RemoveUserScramCredentialRecord":
                del self.others["scram", (values["Name"], values["Mechanism"])]
            case "DelegationTokenRecord":
                self.others["token", values["TokenId"]] = values["ExpirationTimestamp"]
            case "RemoveDelegationTokenRecord":
                del self.others["token", values["TokenId"]]
            case "ProducerIdsRecord":
                self.others["producer ids", None] = values["NextProducerId"]
            case "RegisterControllerRecord":
                self.others["controller", values["ControllerId"]] = values["IncarnationId"]
            case "ZkMigrationStateRecord":
                self.others["migration", None] = values["ZkMigrationState"]

    def with_elr(self, topic: str) -> list[tuple[str, int]]:
        """List the partitions of a topic (of all for "") with an ELR or a last known one, by topic id and number."""
        ids = self.partitions if topic == "" else [key for key, name in self.topics.items() if name == topic]
        return [
            (topic_id, number)
            for topic_id in ids
            for number, one in self.partitions[topic_id].items()
            if one.elr or one.last_known_elr
        ]

    def _set(self, values: Values) -> None:
        resource = values["ResourceType"], values["ResourceName"]
        held = self.settings.setdefault(resource, {})
        if values["Value"] is None:
            held.pop(values["Name"], None)
        else:
            held[values["Name"]] = values["Value"]
        if not held:
            del self.settings[resource]

    def _set_feature(self, name: str, level: int) -> None:
        if level == 0:
            self.features.pop(name, None)
        else:
            self.features[name] = level


def changed(held: Partition, values: Values) -> Partition:
    """Return a partition after a PartitionChangeRecord (``PartitionRegistration.merge``).

    The leader epoch is not in the record. It rises if the record names a leader, even the same one.
    """

    def given(name: str, before: tuple[Any, ...]) -> tuple[Any, ...]:
        after = values[name]
        return before if after is None else tuple(after)

    leader, recovery = values["Leader"], values["LeaderRecoveryState"]
    is_named = leader != LEADER_UNCHANGED
    return Partition(
        given("Replicas", held.replicas),
        given("Isr", held.isr),
        leader if is_named else held.leader,
        held.leader_epoch + is_named,
        held.partition_epoch + 1,
        held.is_recovering if recovery == _RECOVERY_UNCHANGED else recovery == _RECOVERING,
        given("AddingReplicas", held.adding),
        given("RemovingReplicas", held.removing),
        given("Directories", held.directories),
        given("EligibleLeaderReplicas", held.elr),
        given("LastKnownElr", held.last_known_elr),
    )


def _partition(values: Values) -> Partition:
    return Partition(
        tuple(values["Replicas"]),
        tuple(values["Isr"]),
        values["Leader"],
        values["LeaderEpoch"],
        values["PartitionEpoch"],
        values["LeaderRecoveryState"] == _RECOVERING,
        tuple(values["AddingReplicas"]),
        tuple(values["RemovingReplicas"]),
        tuple(values["Directories"]),
        tuple(values["EligibleLeaderReplicas"] or ()),
        tuple(values["LastKnownElr"] or ()),
    )


def _broker(values: Values) -> Broker:
    return Broker(
        values["BrokerId"],
        values["BrokerEpoch"],
        values["IncarnationId"],
        values["Rack"],
        tuple(values["LogDirs"]),
        values["Fenced"],
        values["InControlledShutdown"],
        tuple(values["CordonedLogDirs"] or ()),
    )
