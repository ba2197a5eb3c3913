"""What a principal may request on a gateway's listener: brokers' requests are for brokers, each in its own name.

Clients' requests that a broker passes on have the client's principal, and ``authorization`` decides on them.
"""

import structlog

from brokers.gateways.kraft.log.file_ids import GATEWAY_LOG_TOPIC
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.security.authorization import ANONYMOUS
from brokers.gateways.kraft.security.settings import Security
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values
from brokers.wire.server import Peer

logger = structlog.get_logger()

# The brokers' requests, each with the field that names the broker.
_BROKER_FIELDS = {
    "AllocateProducerIds": "BrokerId",
    "AlterPartition": "BrokerId",
    "AssignReplicasToDirs": "BrokerId",
    "BrokerHeartbeat": "BrokerId",
    "BrokerRegistration": "BrokerId",
    "Envelope": "",
    "Fetch": "ReplicaId",
    "FetchSnapshot": "ReplicaId",
}
# What a client that has proved nothing may request.
_FOR_ALL = frozenset({"ApiVersions", "DescribeCluster", "DescribeQuorum", "SaslHandshake", "SaslAuthenticate"})
# The id of a reader that is not a replica.
_NO_REPLICA = -1


def refused_by_name(security: Security, peer: Peer, request: Request) -> Values | None:
    """Return the refusal of a request that is not ``peer``'s to make, or None if it may go on."""
    if request.name in _BROKER_FIELDS:
        may = _may(security, peer.principal, request)
    else:
        may = peer.principal != ANONYMOUS or request.name in _FOR_ALL
    if may:
        return None
    logger.warning("not authorized", api=request.name, principal=peer.principal, host=peer.host)
    return refusal_of(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)


def _may(security: Security, principal: str, request: Request) -> bool:
    if _is_of_gateways(request):
        return security.gateways.node_of(principal) is not None
    broker = security.brokers.node_of(principal)
    return broker is not None and sender_of(request) in (broker, None)


def _is_of_gateways(request: Request) -> bool:
    """Return whether a request is for one of a gateway's own files."""
    if request.name != "FetchSnapshot":
        return False
    return any(topic["Name"] == GATEWAY_LOG_TOPIC for topic in request.values["Topics"])


def sender_of(request: Request) -> int | None:
    """Return the broker that a request names as its sender, or None if it names none."""
    if request.name not in _BROKER_FIELDS:
        return None
    values = request.values
    if request.name == "Fetch":
        replica = values.get("ReplicaState") or {}
        found = {values.get("ReplicaId", _NO_REPLICA), replica.get("ReplicaId", _NO_REPLICA)} - {_NO_REPLICA}
        # Two different ids belong to no broker.
        return next(iter(found)) if len(found) == 1 else None if not found else _NO_REPLICA
    field = _BROKER_FIELDS[request.name]
    number = int(values[field]) if field else _NO_REPLICA
    return None if number == _NO_REPLICA and request.name in ("Envelope", "FetchSnapshot") else number
