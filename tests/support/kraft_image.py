"""A second reader of the metadata log: a Kafka broker's image of its records, modelled on Kafka's classes."""

from typing import Any

from brokers.wire.metadata.record_frame import decode_record

NAME = dict[str, Any]


class Broker:
    """A broker's image in plain tables, which apply records as ``MetadataDelta`` does."""

    def __init__(self) -> None:
        self.brokers: dict[int, NAME] = {}
        self.topics: dict[str, str] = {}
        self.partitions: dict[tuple[str, int], NAME] = {}
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        # Settings of brokers that a request set to the value that they had: brokers are told of them again.
        self.set_again: frozenset[str] = frozenset()
        self.features: dict[str, int] = {}
        self.next_producer_id = -1
        self.acls: dict[str, NAME] = {}
        self.credentials: dict[tuple[int, str], NAME] = {}
        self.tokens: dict[str, NAME] = {}
        self.quotas: dict[tuple[tuple[str, str | None], ...], dict[str, float]] = {}

    def take(self, value: bytes) -> None:
        name, _, values = decode_record(value)
        getattr(self, f"_{name}")(values)

    def _FeatureLevelRecord(self, values: NAME) -> None:
        self.features[values["Name"]] = values["FeatureLevel"]

    def _RegisterBrokerRecord(self, values: NAME) -> None:
        self.brokers[values["BrokerId"]] = values

    def _BrokerRegistrationChangeRecord(self, values: NAME) -> None:
        broker = self.brokers[values["BrokerId"]]
        assert broker["BrokerEpoch"] == values["BrokerEpoch"]
        changed = dict(broker)
        if values["Fenced"]:
            changed["Fenced"] = values["Fenced"] == 1
        if values["InControlledShutdown"]:
            changed["InControlledShutdown"] = True
        if values["LogDirs"]:
            changed["LogDirs"] = values["LogDirs"]
        assert changed != broker, "a change that changes nothing"
        self.brokers[values["BrokerId"]] = changed

    def _UnregisterBrokerRecord(self, values: NAME) -> None:
        assert self.brokers.pop(values["BrokerId"])["BrokerEpoch"] == values["BrokerEpoch"]

    def _TopicRecord(self, values: NAME) -> None:
        assert values["TopicId"] not in self.topics
        assert values["Name"] not in self.topics.values()
        self.topics[values["TopicId"]] = values["Name"]

    def _RemoveTopicRecord(self, values: NAME) -> None:
        self.configs.pop((2, self.topics.pop(values["TopicId"])), None)
        for key in [key for key in self.partitions if key[0] == values["TopicId"]]:
            del self.partitions[key]

    def _PartitionRecord(self, values: NAME) -> None:
        assert values["TopicId"] in self.topics
        assert len(values["Directories"]) == len(values["Replicas"])
        self.partitions[values["TopicId"], values["PartitionId"]] = values

    def _PartitionChangeRecord(self, values: NAME) -> None:
        key = values["TopicId"], values["PartitionId"]
        after = dict(self.partitions[key])
        for field in ("Replicas", "Isr", "RemovingReplicas", "AddingReplicas", "Directories"):
            if values[field] is not None:
                assert values[field] != after[field], "only what changed is told"
                after[field] = values[field]
        if values["Leader"] != -2:
            after["Leader"] = values["Leader"]
            after["LeaderEpoch"] += 1
        if values["LeaderRecoveryState"] != -1:
            after["LeaderRecoveryState"] = values["LeaderRecoveryState"]
        after["PartitionEpoch"] += 1
        assert len(after["Directories"]) == len(after["Replicas"])
        self.partitions[key] = after

    def _ConfigRecord(self, values: NAME) -> None:
        config = self.configs.setdefault((values["ResourceType"], values["ResourceName"]), {})
        if values["Value"] is None:
            del config[values["Name"]]
        else:
            is_new = config.get(values["Name"]) != values["Value"]
            assert is_new or values["Name"] in self.set_again, "only what changed is told"
            config[values["Name"]] = values["Value"]

    def _AccessControlEntryRecord(self, values: NAME) -> None:
        assert values["Id"] not in self.acls
        assert {**values, "Id": ""} not in [{**held, "Id": ""} for held in self.acls.values()]
        self.acls[values["Id"]] = values

    def _RemoveAccessControlEntryRecord(self, values: NAME) -> None:
        del self.acls[values["Id"]]

    def _ClientQuotaRecord(self, values: NAME) -> None:
        entity = tuple(sorted((one["EntityType"], one["EntityName"]) for one in values["Entity"]))
        quotas = self.quotas.setdefault(entity, {})
        if values["Remove"]:
            del quotas[values["Key"]]
            if not quotas:
                del self.quotas[entity]
        else:
            assert quotas.get(values["Key"]) != values["Value"]
            quotas[values["Key"]] = values["Value"]

    def _UserScramCredentialRecord(self, values: NAME) -> None:
        key = values["Mechanism"], values["Name"]
        assert self.credentials.get(key) != values
        self.credentials[key] = values

    def _RemoveUserScramCredentialRecord(self, values: NAME) -> None:
        del self.credentials[values["Mechanism"], values["Name"]]

    def _DelegationTokenRecord(self, values: NAME) -> None:
        assert self.tokens.get(values["TokenId"]) != values
        self.tokens[values["TokenId"]] = values

    def _RemoveDelegationTokenRecord(self, values: NAME) -> None:
        del self.tokens[values["TokenId"]]

    def _NoOpRecord(self, values: NAME) -> None:
        assert values == {}

    def _ProducerIdsRecord(self, values: NAME) -> None:
        assert values["NextProducerId"] > self.next_producer_id
        self.next_producer_id = values["NextProducerId"]
