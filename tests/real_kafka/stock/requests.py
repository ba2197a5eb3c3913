"""Requests that Kafka's own controller and a gateway are to answer alike.

They are played in order on an empty cluster of four brokers. In their values, ``<id t>`` is the id of topic ``t``, and
``<epoch 1>`` is the broker epoch of broker 1.
"""

from typing import Any, NamedTuple

from tests.brokers.gateways.kraft.apis.topic_requests import new_topic

TIMEOUT_MS = 30_000
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
UNKNOWN_ID = "AAAAAAAAAAAAAAAAAAAAKg"
SET, DELETE, APPEND, SUBTRACT = range(4)
TOPIC, BROKER, METRICS, GROUP = 2, 4, 16, 32


class Asked(NamedTuple):
    """A request, and why the answers to it differ; empty if they are the same."""

    api: str
    values: dict[str, Any]
    differs: str = ""


def topic(
    name: str,
    partitions: int = 1,
    replicas: int = 1,
    assigned: dict[int, list[int]] | None = None,
    **config: str | None,
) -> dict[str, Any]:
    if not assigned:
        return new_topic(name, partitions, replicas, **config)
    assignments = [{"PartitionIndex": number, "BrokerIds": ids} for number, ids in assigned.items()]
    return new_topic(name, -1, -1, **config) | {"Assignments": assignments}


def create(*topics: dict[str, Any], validate_only: bool = False, differs: str = "") -> Asked:
    values = {"Topics": list(topics), "timeoutMs": TIMEOUT_MS, "validateOnly": validate_only}
    return Asked("CreateTopics", values, differs)


def delete(*names: str | tuple[str | None, str], differs: str = "") -> Asked:
    """Ask to delete topics, each given by its name or by a pair of name and id."""
    pairs = [(one, NO_ID) if isinstance(one, str) else one for one in names]
    topics = [{"Name": name, "TopicId": topic_id} for name, topic_id in pairs]
    return Asked("DeleteTopics", {"Topics": topics, "TimeoutMs": TIMEOUT_MS}, differs)


def grow(
    *topics: tuple[str, int] | tuple[str, int, list[list[int]]], validate_only: bool = False, differs: str = ""
) -> Asked:
    """Ask for a number of partitions of each topic, perhaps with the replicas of the new ones."""
    listed = [
        {"Name": name, "Count": count, "Assignments": [{"BrokerIds": ids} for ids in rest[0]] if rest else None}
        for name, count, *rest in topics
    ]
    return Asked(
        "CreatePartitions", {"Topics": listed, "TimeoutMs": TIMEOUT_MS, "ValidateOnly": validate_only}, differs
    )


def move(topics: dict[str, dict[int, list[int] | None]], may_resize: bool = True, differs: str = "") -> Asked:
    """Ask for other replicas of partitions; None cancels a reassignment."""
    listed = [
        {"Name": name, "Partitions": [{"PartitionIndex": number, "Replicas": ids} for number, ids in parts.items()]}
        for name, parts in topics.items()
    ]
    values = {"TimeoutMs": TIMEOUT_MS, "AllowReplicationFactorChange": may_resize, "Topics": listed}
    return Asked("AlterPartitionReassignments", values, differs)


def moves(topics: dict[str, list[int]] | None) -> Asked:
    listed = None if topics is None else [{"Name": one, "PartitionIndexes": parts} for one, parts in topics.items()]
    return Asked("ListPartitionReassignments", {"TimeoutMs": TIMEOUT_MS, "Topics": listed})


def elect(kind: int, topics: dict[str, list[int]] | None, differs: str = "") -> Asked:
    listed = None if topics is None else [{"Topic": one, "Partitions": parts} for one, parts in topics.items()]
    return Asked("ElectLeaders", {"ElectionType": kind, "TopicPartitions": listed, "TimeoutMs": TIMEOUT_MS}, differs)


def alter(
    *resources: tuple[int, str, list[tuple[str, int, str | None]]], validate_only: bool = False, differs: str = ""
) -> Asked:
    listed = [
        {
            "ResourceType": kind,
            "ResourceName": name,
            "Configs": [
                {"Name": key, "ConfigOperation": operation, "Value": value} for key, operation, value in changes
            ],
        }
        for kind, name, changes in resources
    ]
    return Asked("IncrementalAlterConfigs", {"Resources": listed, "ValidateOnly": validate_only}, differs)


def replace(
    *resources: tuple[int, str, dict[str, str | None]], validate_only: bool = False, differs: str = ""
) -> Asked:
    listed = [
        {
            "ResourceType": kind,
            "ResourceName": name,
            "Configs": [{"Name": key, "Value": value} for key, value in config.items()],
        }
        for kind, name, config in resources
    ]
    return Asked("AlterConfigs", {"Resources": listed, "ValidateOnly": validate_only}, differs)


def describe(
    *resources: tuple[int, str, list[str] | None],
    synonyms: bool = False,
    documentation: bool = False,
    differs: str = "",
) -> Asked:
    """Ask for settings of resources, all or those of the given names."""
    listed = [{"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys} for kind, name, keys in resources]
    values = {"Resources": listed, "IncludeSynonyms": synonyms, "IncludeDocumentation": documentation}
    return Asked("DescribeConfigs", values, differs)


def quotas(
    *entries: tuple[dict[str, str | None], dict[str, float | None]], validate_only: bool = False, differs: str = ""
) -> Asked:
    """Set or (None) remove quotas of entities; the default entity of a type has the name None."""
    listed = [
        {
            "Entity": [{"EntityType": kind, "EntityName": name} for kind, name in entity.items()],
            "Ops": [{"Key": key, "Value": value or 0.0, "Remove": value is None} for key, value in changes.items()],
        }
        for entity, changes in entries
    ]
    return Asked("AlterClientQuotas", {"Entries": listed, "ValidateOnly": validate_only}, differs)


def credentials(*deleted: tuple[str, int], differs: str = "", **upserted: Any) -> Asked:
    """Set credentials of users (``alice=(mechanism, iterations, salt, salted_password)``), and delete others."""
    values = {
        "Deletions": [{"Name": name, "Mechanism": mechanism} for name, mechanism in deleted],
        "Upsertions": [
            dict(zip(("Name", "Mechanism", "Iterations", "Salt", "SaltedPassword"), (name, *one), strict=True))
            for name, one in upserted.items()
        ],
    }
    return Asked("AlterUserScramCredentials", values, differs)


def features(*updates: tuple[str, int, int], validate_only: bool = False, differs: str = "") -> Asked:
    """Change levels of features: the name, the level, and how (1 upgrades, 2 downgrades safely, 3 at any cost)."""
    listed = [
        {"Feature": name, "MaxVersionLevel": level, "AllowDowngrade": False, "UpgradeType": how}
        for name, level, how in updates
    ]
    return Asked(
        "UpdateFeatures", {"timeoutMs": TIMEOUT_MS, "FeatureUpdates": listed, "ValidateOnly": validate_only}, differs
    )


def assign(directory: str, place: tuple[str, int], sender: tuple[int, int | str], differs: str = "") -> Asked:
    """Report that a replica of the sender is in a log directory."""
    topics = [{"TopicId": place[0], "Partitions": [{"PartitionIndex": place[1]}]}]
    directories = [{"Id": directory, "Topics": topics}]
    values = {"BrokerId": sender[0], "BrokerEpoch": sender[1], "Directories": directories}
    return Asked("AssignReplicasToDirs", values, differs)


def isr(
    members: list[int] | list[tuple[int, int]],
    epochs: tuple[int, int] = (0, 0),
    *,
    place: tuple[str, int] = ("<id i>", 0),
    sender: tuple[int, int | str] = (1, "<epoch 1>"),
    recovery: int = 0,
    differs: str = "",
) -> Asked:
    """Ask for an ISR, in a leader epoch and a partition epoch. A member is a broker, perhaps with its broker epoch."""
    pairs = [one if isinstance(one, tuple) else (one, -1) for one in members]
    partition = {
        "PartitionIndex": place[1],
        "LeaderEpoch": epochs[0],
        "NewIsrWithEpochs": [{"BrokerId": broker, "BrokerEpoch": epoch} for broker, epoch in pairs],
        "LeaderRecoveryState": recovery,
        "PartitionEpoch": epochs[1],
    }
    topics = [{"TopicId": place[0], "Partitions": [partition]}]
    return Asked("AlterPartition", {"BrokerId": sender[0], "BrokerEpoch": sender[1], "Topics": topics}, differs)


def heartbeat(broker: int, epoch: int) -> Asked:
    values = {"BrokerEpoch": epoch, "CurrentMetadataOffset": 1, "WantFence": False, "WantShutDown": False}
    return Asked("BrokerHeartbeat", {"BrokerId": broker} | values)


def producer_ids(broker: int, epoch: int | str) -> Asked:
    return Asked("AllocateProducerIds", {"BrokerId": broker, "BrokerEpoch": epoch})


def quorum(*topics: tuple[str, int]) -> Asked:
    listed = [{"TopicName": name, "Partitions": [{"PartitionIndex": number}]} for name, number in topics]
    return Asked("DescribeQuorum", {"Topics": listed})


def controllers(endpoint_type: int, *, with_operations: bool = False) -> Asked:
    values = {
        "IncludeClusterAuthorizedOperations": with_operations,
        "EndpointType": endpoint_type,
        "IncludeFencedBrokers": False,
    }
    return Asked("DescribeCluster", values)
