"""How a whole request is refused, API by API: some have one error, some one for each thing asked for."""

from collections.abc import Callable
from itertools import chain

from isrflow.brokers.gateways.kraft.messages import Request
from isrflow.brokers.wire.errors import ErrorCode
from isrflow.brokers.wire.schema import Values


def refusal_of(request: Request, error: ErrorCode) -> Values:
    """Make the response that refuses all of a request."""
    if request.name == "ElectLeaders":
        return _elections(request, error)
    return _REFUSALS.get(request.name, _at_the_top)(request.values, error)


def _at_the_top(asked: Values, error: ErrorCode) -> Values:
    return {"ErrorCode": error}


def _each_created_topic(asked: Values, error: ErrorCode) -> Values:
    return {"Topics": [{"Name": topic["Name"], "ErrorCode": error} for topic in asked["Topics"]]}


def _each_deleted_topic(asked: Values, error: ErrorCode) -> Values:
    named = ({"Name": name, "ErrorCode": error} for name in asked["TopicNames"])
    by_id = ({"Name": one["Name"], "TopicId": one["TopicId"], "ErrorCode": error} for one in asked["Topics"])
    return {"Responses": list(chain(named, by_id))}


def _each_grown_topic(asked: Values, error: ErrorCode) -> Values:
    return {"Results": [{"Name": topic["Name"], "ErrorCode": error} for topic in asked["Topics"]]}


def _each_resource(asked: Values, error: ErrorCode) -> Values:
    return {
        "Responses": [
            {
                "ResourceType": one["ResourceType"],
                "ResourceName": one["ResourceName"],
                "ErrorCode": error,
                "ErrorMessage": None,
            }
            for one in asked["Resources"]
        ]
    }


def _with_message(asked: Values, error: ErrorCode) -> Values:
    return {"ErrorCode": error, "ErrorMessage": None}


def _elections(request: Request, error: ErrorCode) -> Values:
    # Version 0 has no error for the whole: there each partition tells.
    named = request.values["TopicPartitions"] or ()
    results = [
        {
            "Topic": one["Topic"],
            "PartitionResult": [
                {"PartitionId": number, "ErrorCode": error, "ErrorMessage": None} for number in one["Partitions"]
            ],
        }
        for one in named
    ]
    whole = {"ErrorCode": error} if request.version > 0 else {}
    return whole | {"ReplicaElectionResults": results}


_REFUSALS: dict[str, Callable[[Values, ErrorCode], Values]] = {
    "CreateTopics": _each_created_topic,
    "DeleteTopics": _each_deleted_topic,
    "CreatePartitions": _each_grown_topic,
    "AlterConfigs": _each_resource,
    "IncrementalAlterConfigs": _each_resource,
    "AlterPartitionReassignments": _with_message,
    "ListPartitionReassignments": _with_message,
    "UnregisterBroker": _with_message,
}
