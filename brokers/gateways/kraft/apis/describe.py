"""Requests about the quorum and the places of controllers (DescribeQuorum, DescribeCluster)."""

from collections.abc import Sequence

from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.acl_numbers import OPERATIONS
from brokers.gateways.kraft.metadata.voters import directory_id_of
from brokers.gateways.kraft.security.authorization import ANONYMOUS
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode
from brokers.wire.metadata.topic import METADATA_TOPIC
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms

_BROKERS, _CONTROLLERS = 1, 2
# A response has this number instead of the allowed operations if the request did not ask for them.
_NOT_ASKED = -(2**31)
_NODES_VERSION = 2


async def describe_quorum(context: Context, request: Request, peer: Peer) -> Values:
    """Return which gateway leads the quorum, how far each broker has read, and when it was last at the end."""
    if not _is_of_metadata(request.values["Topics"]):
        return {"Topics": [_unknown(topic) for topic in request.values["Topics"]]}
    quorum_view, end, now = context.quorum_view, context.storage.end_offset, now_ms()
    held = context.logged_voters if request.version >= _NODES_VERSION else {}
    voters = [
        {"ReplicaId": voter.voter, "LogEndOffset": end}
        | ({"ReplicaDirectoryId": directory_id_of(voter.voter)} if str(voter.voter) in held else {})
        | ({"LastFetchTimestamp": now, "LastCaughtUpTimestamp": now} if voter.voter == quorum_view.leader else {})
        for voter in context.voters
    ]
    observers = [
        {
            "ReplicaId": broker,
            "LogEndOffset": offset,
            "LastFetchTimestamp": quorum_view.fetched_ms[broker],
            "LastCaughtUpTimestamp": quorum_view.caught_up_ms.get(broker, -1),
        }
        for broker, offset in sorted(quorum_view.fetched.items())
        if broker in quorum_view.brokers
    ]
    partition = {
        "PartitionIndex": 0,
        "LeaderId": quorum_view.leader,
        "LeaderEpoch": quorum_view.quorum_epoch,
        "HighWatermark": end,
        "CurrentVoters": voters,
        "Observers": observers,
    }
    listeners = context.settings.listener_names
    nodes = [
        {
            "NodeId": voter.voter,
            "Listeners": [{"Name": name, "Host": voter.host, "Port": voter.port} for name in listeners],
        }
        for voter in context.voters
    ]
    topics = [{"TopicName": METADATA_TOPIC, "Partitions": [partition]}]
    return {"Topics": topics, "Nodes": nodes if request.version >= _NODES_VERSION else []}


def _is_of_metadata(topics: Sequence[Values]) -> bool:
    numbers = [(topic["TopicName"], one["PartitionIndex"]) for topic in topics for one in topic["Partitions"]]
    return numbers == [(METADATA_TOPIC, 0)]


def _unknown(topic: Values) -> Values:
    unknown = {"ErrorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "ErrorMessage": "only the metadata log has a quorum"}
    partitions = [{"PartitionIndex": one["PartitionIndex"]} | unknown for one in topic["Partitions"]]
    return {"TopicName": topic["TopicName"], "Partitions": partitions}


async def describe_cluster(context: Context, request: Request, peer: Peer) -> Values:
    """Return where the controllers are, for an admin that asks them directly (KIP-919)."""
    kind = request.values["EndpointType"]
    if kind == _BROKERS:
        message = "this listener is of controllers, and brokers are asked for"
        # Version 0 always asks for brokers, and its clients do not know the other error.
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE if request.version > 0 else ErrorCode.INVALID_REQUEST
        return refusal_of(request, error, message)
    if kind != _CONTROLLERS:
        return refusal_of(request, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"there is no endpoint type {kind}")
    operations = _NOT_ASKED
    if request.values["IncludeClusterAuthorizedOperations"]:
        allowed = context.access.operations_on_cluster(peer.principal or ANONYMOUS, peer.host, context.image)
        operations = sum(1 << OPERATIONS[one] for one in allowed)
    return {
        "ClusterAuthorizedOperations": operations,
        "EndpointType": _CONTROLLERS,
        "ClusterId": context.identity.cluster_id,
        "ControllerId": context.quorum_view.leader,
        "Brokers": [{"BrokerId": v.voter, "Host": v.host, "Port": v.port} for v in context.voters],
    }
