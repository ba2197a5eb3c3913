"""Which operation on which resource each request to a controller needs: Kafka's table (``ControllerApis``). Pure.

It also has requests that gateways do not serve, because Kafka's table has them.
"""

from brokers.gateways.kraft.metadata.image import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from brokers.gateways.kraft.security.authorizer import Action
from brokers.wire.schema import Values
from state.acl import CLUSTER_NAME, Operation, ResourceType

# Requests that need no permission, because the caller is not known yet.
FREE = frozenset({"ApiVersions", "SaslHandshake", "SaslAuthenticate"})
# Requests that are allowed or refused as a whole, by an operation on the cluster.
ON_CLUSTER: dict[str, Operation] = {
    "AddRaftVoter": "ALTER",
    "AllocateProducerIds": "CLUSTER_ACTION",
    "AlterClientQuotas": "ALTER_CONFIGS",
    "AlterPartition": "CLUSTER_ACTION",
    "AlterPartitionReassignments": "ALTER",
    "AlterUserScramCredentials": "ALTER",
    "AssignReplicasToDirs": "CLUSTER_ACTION",
    "BeginQuorumEpoch": "CLUSTER_ACTION",
    "BrokerHeartbeat": "CLUSTER_ACTION",
    "BrokerRegistration": "CLUSTER_ACTION",
    "ControllerRegistration": "CLUSTER_ACTION",
    "CreateAcls": "ALTER",
    "DeleteAcls": "ALTER",
    "DescribeAcls": "DESCRIBE",
    "DescribeCluster": "ALTER",
    "DescribeQuorum": "DESCRIBE",
    "ElectLeaders": "ALTER",
    "EndQuorumEpoch": "CLUSTER_ACTION",
    "Envelope": "CLUSTER_ACTION",
    "Fetch": "CLUSTER_ACTION",
    "FetchSnapshot": "CLUSTER_ACTION",
    "ListPartitionReassignments": "DESCRIBE",
    "RemoveRaftVoter": "ALTER",
    "UnregisterBroker": "ALTER",
    "UnregisterController": "ALTER",
    "UpdateFeatures": "ALTER",
    "UpdateRaftVoter": "CLUSTER_ACTION",
    "Vote": "CLUSTER_ACTION",
}
# The operations that there are on a cluster (``AclEntry.supportedOperations``).
OF_CLUSTER: tuple[Operation, ...] = (
    "CREATE",
    "ALTER",
    "DESCRIBE",
    "CLUSTER_ACTION",
    "DESCRIBE_CONFIGS",
    "ALTER_CONFIGS",
    "IDEMPOTENT_WRITE",
)
# Requests about topics, each allowed or refused by itself.
ON_TOPICS: dict[str, Operation] = {"CreatePartitions": "ALTER", "CreateTopics": "CREATE", "DeleteTopics": "DELETE"}
# Of these, the same operation on the cluster allows a request for every topic.
FOR_ALL_TOPICS = frozenset({"CreateTopics", "DeleteTopics"})
# Requests about settings, each resource by itself.
ON_SETTINGS: dict[str, Operation] = {
    "AlterConfigs": "ALTER_CONFIGS",
    "DescribeConfigs": "DESCRIBE_CONFIGS",
    "IncrementalAlterConfigs": "ALTER_CONFIGS",
}
_HOLDERS: dict[int, ResourceType] = {
    BROKER_RESOURCE: "CLUSTER",
    CLIENT_METRICS_RESOURCE: "CLUSTER",
    GROUP_RESOURCE: "GROUP",
    TOPIC_RESOURCE: "TOPIC",
}


def on_cluster(operation: Operation) -> Action:
    """Return an operation on the cluster as an action."""
    return Action(operation, "CLUSTER", CLUSTER_NAME)


def on_topic(request: str, topic: str) -> Action:
    """Return the action that allows a request for one topic."""
    return Action(ON_TOPICS[request], "TOPIC", topic)


def on_settings(request: str, resource: Values) -> Action | None:
    """Return the action that allows a request for a resource's settings; None if such a resource has none."""
    holder = _HOLDERS.get(resource["ResourceType"])
    if holder is None:
        return None
    name = CLUSTER_NAME if holder == "CLUSTER" else resource["ResourceName"]
    return Action(ON_SETTINGS[request], holder, name)
