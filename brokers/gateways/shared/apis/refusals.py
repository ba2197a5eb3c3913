"""The refusal of a whole request, API by API. Some responses have one error, and some have one for each item."""

from collections.abc import Callable
from itertools import chain

from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values


def refusal_of(request: Request, error: ErrorCode, message: str | None = None) -> Values:
    """Return the response that refuses all of a request, with ``message`` if the API has a field for it."""
    refused = {"ErrorCode": error, "ErrorMessage": message}
    if request.name == "ElectLeaders":
        return _elections(request, refused)
    refuse = _REFUSALS.get(request.name)
    return {"ErrorCode": error} if refuse is None else refuse(request.values, refused)


def _each_created_topic(body: Values, refused: Values) -> Values:
    # A topic that is named twice is answered once.
    return {"Topics": [{"Name": name} | refused for name in dict.fromkeys(topic["Name"] for topic in body["Topics"])]}


def _each_deleted_topic(body: Values, refused: Values) -> Values:
    named = ({"Name": name} | refused for name in body["TopicNames"])
    by_id = ({"Name": one["Name"], "TopicId": one["TopicId"]} | refused for one in body["Topics"])
    return {"Responses": list(chain(named, by_id))}


def _each_reassigned_partition(body: Values, refused: Values) -> Values:
    # Java clients give each partition its error only where the response lists the partition.
    partitions = [
        [{"PartitionIndex": one["PartitionIndex"]} | refused for one in topic["Partitions"]] for topic in body["Topics"]
    ]
    named = zip(body["Topics"], partitions, strict=True)
    return refused | {"Responses": [{"Name": topic["Name"], "Partitions": listed} for topic, listed in named]}


def _each_resource(body: Values, refused: Values) -> Values:
    named = ({"ResourceType": one["ResourceType"], "ResourceName": one["ResourceName"]} for one in body["Resources"])
    return {"Responses": [one | refused for one in named]}


def _each_described_resource(body: Values, refused: Values) -> Values:
    # A resource that is named several times is answered once.
    named = dict.fromkeys((one["ResourceType"], one["ResourceName"]) for one in body["Resources"])
    results = [{"ResourceType": kind, "ResourceName": name, "Configs": []} | refused for kind, name in named]
    return {"Results": results}


def _each_user(body: Values, refused: Values) -> Values:
    # A user who is named twice is answered once.
    users = dict.fromkeys(one["Name"] for one in chain(body["Deletions"], body["Upsertions"]))
    return {"Results": [refused | {"User": user} for user in users]}


def _with_message(body: Values, refused: Values) -> Values:
    return refused


def _elections(request: Request, refused: Values) -> Values:
    # Version 0 has no error for the whole request, so each partition has it.
    named = request.values["TopicPartitions"] or ()
    results = [
        {
            "Topic": one["Topic"],
            "PartitionResult": [{"PartitionId": number} | refused for number in one["Partitions"]],
        }
        for one in named
    ]
    whole = {"ErrorCode": refused["ErrorCode"]} if request.version > 0 else {}
    return whole | {"ReplicaElectionResults": results}


_REFUSALS: dict[str, Callable[[Values, Values], Values]] = {
    "CreateTopics": _each_created_topic,
    "DeleteTopics": _each_deleted_topic,
    "CreatePartitions": lambda body, refused: {"Results": [{"Name": one["Name"]} | refused for one in body["Topics"]]},
    "AlterConfigs": _each_resource,
    "IncrementalAlterConfigs": _each_resource,
    "AlterPartitionReassignments": _each_reassigned_partition,
    "AlterUserScramCredentials": _each_user,
    "AlterClientQuotas": lambda body, refused: {
        "Entries": [refused | {"Entity": entry["Entity"]} for entry in body["Entries"]]
    },
    "CreateAcls": lambda body, refused: {"Results": [refused for _ in body["Creations"]]},
    "DeleteAcls": lambda body, refused: {"FilterResults": [refused for _ in body["Filters"]]},
    "DescribeAcls": _with_message,
    "DescribeCluster": _with_message,
    "DescribeConfigs": _each_described_resource,
    "ListPartitionReassignments": _with_message,
    "UnregisterBroker": _with_message,
    "UnregisterController": _with_message,
    "UpdateFeatures": _with_message,
}
