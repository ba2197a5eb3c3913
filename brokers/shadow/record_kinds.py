"""Which records stand for which operation of Kafka's controller."""

from brokers.shadow.cluster_image import TOPIC_RESOURCE
from brokers.wire.metadata.record_frame import Record
from state.observed_events import Cause

CHANGE = "PartitionChangeRecord"
OF_TOPICS = frozenset({"TopicRecord", "PartitionRecord"})
# Neighbours of these causes, asked for by the same broker, are one operation.
IN_RUNS = frozenset(
    {
        Cause.isr_shrunk,
        Cause.isr_expanded,
        Cause.leader_recovered,
        Cause.replica_placed,
        Cause.preferred_election,
        Cause.unclean_election,
        Cause.reassignment_began,
        Cause.reassignment_ended,
        Cause.reassignment_cancelled,
        Cause.reassignment_done_at_once,
    }
)
# What a run of other records is.
CAUSES = {
    "ConfigRecord": Cause.settings_changed,
    "ClearElrRecord": Cause.elr_cleared,
    "RemoveTopicRecord": Cause.topic_deleted,
    "FeatureLevelRecord": Cause.feature_changed,
    "AccessControlEntryRecord": Cause.access_changed,
    "RemoveAccessControlEntryRecord": Cause.access_changed,
    "UserScramCredentialRecord": Cause.access_changed,
    "RemoveUserScramCredentialRecord": Cause.access_changed,
    "DelegationTokenRecord": Cause.access_changed,
    "RemoveDelegationTokenRecord": Cause.access_changed,
    "ClientQuotaRecord": Cause.quotas_changed,
}
OF_BROKERS = frozenset(
    {
        "RegisterBrokerRecord",
        "UnregisterBrokerRecord",
        "BrokerRegistrationChangeRecord",
        "FenceBrokerRecord",
        "UnfenceBrokerRecord",
    }
)
# They change nothing.
SILENT = frozenset({"NoOpRecord", "BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"})


def is_of_topic(record: Record, first: Record) -> bool:
    """Return whether a record belongs to the same new topic, or the same new partitions, as the first one."""
    match record.name:
        case "TopicRecord" | "PartitionRecord":
            return bool(record.values["TopicId"] == first.values["TopicId"])
        case "ConfigRecord":
            is_topic = record.values["ResourceType"] == TOPIC_RESOURCE
            return is_topic and bool(record.values["ResourceName"] == first.values.get("Name"))
        case "ClearElrRecord":
            return bool(record.values["TopicName"] == first.values.get("Name"))
    return False


def is_in_run(record: Record, cause: Cause) -> bool:
    """Return whether a record stands for itself, and has this cause."""
    stands_alone = record.name != CHANGE and record.name not in OF_BROKERS | OF_TOPICS | SILENT
    return stands_alone and CAUSES.get(record.name, Cause.other) == cause
