"""Where the quorum and the cluster's controllers are (DescribeQuorum, DescribeCluster)."""

from brokers.gateways.kraft.apis.metadata_fetch import METADATA_TOPIC
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms

_CONTROLLERS = 2
_NODES_VERSION = 2


async def describe_quorum(context: Context, request: Request, peer: Peer) -> Values:
    """Answer which gateway leads the quorum, how far each broker has read, and when it was last at the end."""
    quorum_view, end, now = context.quorum_view, context.storage.end_offset, now_ms()
    voters = [
        {"ReplicaId": voter.voter, "LogEndOffset": end}
        | ({"LastFetchTimestamp": now, "LastCaughtUpTimestamp": now} if voter.voter == quorum_view.leader else {})
        for voter in context.identity.voters
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
    nodes = [
        {"NodeId": voter.voter, "Listeners": [{"Name": "CONTROLLER", "Host": voter.host, "Port": voter.port}]}
        for voter in context.identity.voters
    ]
    topics = [{"TopicName": METADATA_TOPIC, "Partitions": [partition]}]
    return {"Topics": topics, "Nodes": nodes if request.version >= _NODES_VERSION else []}


async def describe_cluster(context: Context, request: Request, peer: Peer) -> Values:
    """Answer where the controllers are, to an admin that asks them directly (KIP-919)."""
    if request.values["EndpointType"] != _CONTROLLERS:
        return {"ErrorCode": ErrorCode.MISMATCHED_ENDPOINT_TYPE, "ClusterId": "", "Brokers": []}
    return {
        "EndpointType": _CONTROLLERS,
        "ClusterId": context.identity.cluster_id,
        "ControllerId": context.quorum_view.leader,
        "Brokers": [{"BrokerId": v.voter, "Host": v.host, "Port": v.port} for v in context.identity.voters],
    }
