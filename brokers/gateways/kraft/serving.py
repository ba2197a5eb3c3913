"""The APIs of a controller's listener, and the way from a request to its response."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

import structlog

from brokers.gateways.kraft.apis import (
    acls,
    bounds,
    configs,
    delegation_tokens,
    describe,
    describe_configs,
    features,
    log_directories,
    metadata_fetch,
    mutations,
    quotas,
    registration,
    scram_credentials,
)
from brokers.gateways.kraft.apis.short_messages import with_short_messages
from brokers.gateways.kraft.context import BYTES_PER_ITEM, OFFLOAD_ITEMS_MIN, Context, NotLeadingError
from brokers.gateways.kraft.messages import (
    API_VERSIONS_KEY,
    API_VERSIONS_MAX,
    Request,
    UnsupportedError,
    decode_request,
    encode_response,
    framed,
    versions_refusal,
)
from brokers.gateways.kraft.security.access import refused_by_name, sender_of
from brokers.gateways.kraft.security.authorization import ANONYMOUS, Caller, caller_of, shown_principal
from brokers.gateways.kraft.security.door import GatewayDoor
from brokers.gateways.shared.apis import elections, partitions, topic_deletion, topics
from brokers.gateways.shared.apis.asking import RECORDS_MAX, answered
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.messages import WireError
from brokers.wire.schema import Values
from brokers.wire.security.connecting import (
    AUTHENTICATE_KEY,
    AUTHENTICATE_VERSION_MAX,
    HANDSHAKE_KEY,
    HANDSHAKE_VERSION,
)
from brokers.wire.server import Answer, Peer
from state.features import SERVED

Handler = Callable[[Context, Request, Peer], Awaitable[Values]]

logger = structlog.get_logger()

ENVELOPE_KEY = 58
SASL_KEYS = (HANDSHAKE_KEY, AUTHENTICATE_KEY)
# Short requests that may have long answers: DescribeConfigs, ElectLeaders and ListPartitionReassignments.
LONG_ANSWERS = (32, 43, 46)
# A gateway that has lost the bus makes a broker wait this long, and then sends it to another voter.
CUT_OFF_PAUSE_S = 0.25


class Api(NamedTuple):
    """The versions of one API that are served, and its handler."""

    min_version: int
    max_version: int
    handler: Handler
    # Whether only the gateway that leads may answer.
    is_leaders: bool = True
    # Whether clients may send it through a broker, in an Envelope.
    is_forwarded: bool = False


async def api_versions(context: Context, request: Request, peer: Peer) -> Values:
    """Return the APIs that are served, and the finalized features."""
    return versions_of(context, request)


def versions_of(context: Context, request: Request) -> Values:
    """Return the answer to ApiVersions, which a client may also request before it is authenticated."""
    is_sasl = context.security is not None and bool(context.security.mechanisms)
    keys = [
        {"ApiKey": key, "MinVersion": api.min_version, "MaxVersion": api.max_version}
        for key, api in APIS.items()
        if is_sasl or key not in SASL_KEYS
    ]
    levels = sorted((name, level) for name, level in features.levels_of(context).items() if level)
    # Version 3 clients cannot read a feature whose lowest level is 0 (KAFKA-17492).
    supported = [(name, *levels) for name, levels in SERVED.items() if levels.low > 0 or request.version != 3]
    return {
        "ApiKeys": sorted(keys, key=lambda one: one["ApiKey"]),
        "SupportedFeatures": [{"Name": name, "MinVersion": low, "MaxVersion": high} for name, low, high in supported],
        "FinalizedFeaturesEpoch": max(context.storage.end_offset - 1, 0),
        "FinalizedFeatures": [
            {"Name": name, "MaxVersionLevel": level, "MinVersionLevel": level} for name, level in levels
        ],
    }


def door_of(context: Context) -> GatewayDoor | None:
    """Return the door of a gateway; None if its listener does not authenticate clients."""
    if context.security is None:
        return None
    timeout_s = context.settings.authentication_timeout_ms / 1000
    return GatewayDoor(context.security, partial(versions_of, context), timeout_s)


async def already_known(context: Context, request: Request, peer: Peer) -> Values:
    """Refuse to authenticate again: a connection belongs to one principal for its whole life."""
    return {"ErrorCode": ErrorCode.ILLEGAL_SASL_STATE}


async def fetch(context: Context, request: Request, peer: Peer) -> Values:
    """Return the records after the broker's offset. If there are none and this gateway is cut off, refuse.

    A broker that gets BROKER_NOT_AVAILABLE asks another voter, or this one again if there is no other. Its own state
    does not change meanwhile (``KafkaRaftClient.maybeSendFetchToBestNode``).
    """
    values = await metadata_fetch.fetch(context, request, peer)
    if context.quorum_view.leads and context.is_cut_off and _is_empty(values):
        return refusal_of(request, ErrorCode.BROKER_NOT_AVAILABLE)
    return values


def _is_empty(values: Values) -> bool:
    partitions = [partition for topic in values.get("Responses", ()) for partition in topic["Partitions"]]
    return bool(partitions) and not any(
        partition["Records"] or partition.get("ErrorCode") or partition.keys() & {"SnapshotId", "DivergingEpoch"}
        for partition in partitions
    )


async def envelope(context: Context, request: Request, peer: Peer) -> Values:
    """Serve a client's request that a broker passes on.

    A request that is not supported gets an error in the Envelope's response, and the connection stays open.
    """
    data = request.values["RequestData"]
    try:
        caller = caller_of(request.values, must_be_known=context.access.must_know_callers)
    except RefusedError as refusal:
        logger.warning("unreadable envelope", why=str(refusal))
        return {"ErrorCode": refusal.code}
    try:
        inner = await context.offload(len(data) // BYTES_PER_ITEM, decode_request, data)
    except UnsupportedError as error:
        logger.info("not served", api=error.header.api_key, version=error.header.version, by="envelope")
        return {"ErrorCode": ErrorCode.UNSUPPORTED_VERSION}
    except WireError as error:
        logger.warning("unreadable envelope", why=str(error))
        return {"ErrorCode": ErrorCode.INVALID_REQUEST}
    api = APIS.get(inner.api_key)
    if api is None or not api.is_forwarded or not api.min_version <= inner.version <= api.max_version:
        logger.info("not served", api=inner.name, version=inner.version, by="envelope")
        return {"ErrorCode": ErrorCode.UNSUPPORTED_VERSION}
    # If another gateway leads by now, the broker looks for it only if the Envelope's own error tells it to.
    try:
        return {"ResponseData": await _served(context, inner, peer, caller, len(data))}
    except NotLeadingError:
        return {"ErrorCode": ErrorCode.NOT_CONTROLLER}


APIS: dict[int, Api] = {
    1: Api(12, 18, fetch, is_leaders=False),
    API_VERSIONS_KEY: Api(0, API_VERSIONS_MAX, api_versions, is_leaders=False),
    HANDSHAKE_KEY: Api(HANDSHAKE_VERSION, HANDSHAKE_VERSION, already_known, is_leaders=False),
    19: Api(2, 7, topics.create_topics, is_forwarded=True),
    20: Api(1, 6, topic_deletion.delete_topics, is_forwarded=True),
    29: Api(1, 3, acls.describe_acls),
    30: Api(1, 3, acls.create_acls, is_forwarded=True),
    31: Api(1, 3, acls.delete_acls, is_forwarded=True),
    32: Api(1, 4, describe_configs.describe_configs, is_leaders=False),
    33: Api(0, 2, configs.alter_configs, is_forwarded=True),
    AUTHENTICATE_KEY: Api(0, AUTHENTICATE_VERSION_MAX, already_known, is_leaders=False),
    37: Api(0, 3, topics.create_partitions, is_forwarded=True),
    38: Api(1, 3, delegation_tokens.create_delegation_token, is_forwarded=True),
    39: Api(1, 2, delegation_tokens.renew_delegation_token, is_forwarded=True),
    40: Api(1, 2, delegation_tokens.expire_delegation_token, is_forwarded=True),
    43: Api(0, 2, elections.elect_leaders, is_forwarded=True),
    44: Api(0, 1, configs.incremental_alter_configs, is_forwarded=True),
    45: Api(0, 1, elections.alter_partition_reassignments, is_forwarded=True),
    46: Api(0, 0, elections.list_partition_reassignments, is_forwarded=True),
    49: Api(0, 1, quotas.alter_client_quotas, is_forwarded=True),
    51: Api(0, 0, scram_credentials.alter_user_scram_credentials, is_forwarded=True),
    55: Api(0, 2, describe.describe_quorum, is_forwarded=True),
    56: Api(2, 3, partitions.alter_partition),
    57: Api(0, 2, features.update_features, is_forwarded=True),
    ENVELOPE_KEY: Api(0, 0, envelope),
    59: Api(0, 1, metadata_fetch.fetch_snapshot, is_leaders=False),
    60: Api(0, 2, describe.describe_cluster, is_leaders=False),
    62: Api(0, 4, registration.broker_registration),
    63: Api(0, 2, registration.broker_heartbeat),
    64: Api(0, 0, registration.unregister_broker, is_forwarded=True),
    67: Api(0, 0, partitions.allocate_producer_ids),
    73: Api(0, 0, log_directories.assign_replicas_to_dirs),
    94: Api(0, 0, registration.unregister_controller, is_forwarded=True),
}


def answering(context: Context) -> Answer:
    """Return the function that answers requests for ``context``'s gateway."""

    async def answer(frame: bytes, peer: Peer) -> bytes:
        try:
            request = await context.offload(len(frame) // BYTES_PER_ITEM, decode_request, frame)
        except UnsupportedError as error:
            return versions_refusal(error)
        api = APIS.get(request.api_key)
        if api is None or not api.min_version <= request.version <= api.max_version:
            raise WireError(f"{request.name} version {request.version} is not served")
        principal, is_broker = ANONYMOUS, True
        if context.security is not None:
            refusal = refused_by_name(context.security, peer, request)
            if refusal is not None:
                return framed(_encoded(request, refusal))
            principal, is_broker = peer.principal, context.security.brokers.node_of(peer.principal) is not None
        _hear(context, request)
        caller = Caller(principal, peer.host, is_direct=True, is_broker=is_broker)
        return framed(await _served(context, request, peer, caller, len(frame)))

    return answer


def _hear(context: Context, request: Request) -> None:
    """Note which broker asks, whichever gateway leads. Only registered brokers count, if there are any."""
    sender, known = sender_of(request), context.quorum_view.brokers
    is_of_here = request.values.get("ClusterId") in (None, context.identity.cluster_id)
    if sender is not None and is_of_here and (sender in known or (sender >= 0 and not known)):
        context.heard_brokers.hear(sender)


async def _served(context: Context, request: Request, peer: Peer, caller: Caller, size: int) -> bytes:
    """Return a response even after an exception: a broker whose connection closes sends the same request again.

    Raises ``NotLeadingError`` if a broker forwarded the request.
    """
    # The epoch is read before the metadata is, which may be newer then, but never older.
    request = request._replace(principal=shown_principal(caller), quorum_epoch=context.quorum_view.quorum_epoch)
    things = OFFLOAD_ITEMS_MIN if request.api_key in LONG_ANSWERS else size // BYTES_PER_ITEM
    try:
        values = await _handled(context, request, peer, caller, things)
        return await context.offload(things, _encoded, request, values)
    except NotLeadingError:
        if not caller.is_direct:
            raise
        return await context.offload(things, _refused, request, ErrorCode.NOT_CONTROLLER)
    except Exception:
        logger.exception("a request failed", api=request.name)
        return await context.offload(things, _refused, request, ErrorCode.UNKNOWN_SERVER_ERROR)


def _refused(request: Request, error: ErrorCode) -> bytes:
    return _encoded(request, refusal_of(request, error))


async def _handled(context: Context, request: Request, peer: Peer, caller: Caller, things: int) -> Values:
    api = APIS[request.api_key]
    if api.is_leaders and not context.quorum_view.leads:
        raise NotLeadingError
    if api.is_leaders and context.is_cut_off:
        # The broker should ask another gateway. A broker that knows no other comes back at once, so delay its answer.
        await asyncio.sleep(CUT_OFF_PAUSE_S)
        raise NotLeadingError
    given = partial(context.access.permitted, caller, request, context.image, is_clients=api.is_forwarded)
    # Without access control there is nothing to look through.
    permitted = await context.offload(things if context.access.must_know_callers else 0, given)
    if permitted.request is None:
        return permitted.response(None)
    return permitted.response(await _done(context, api, permitted.request, peer, caller, things))


async def _done(context: Context, api: Api, request: Request, peer: Peer, caller: Caller, things: int) -> Values:
    """Handle the permitted part of a request, unless it is too large."""
    records = await context.offload(things, bounds.records_of, context, request)
    if records > RECORDS_MAX:
        logger.warning("refused", api=request.name, records=records, records_max=RECORDS_MAX)
        message = f"the request leads to {records} records, and {RECORDS_MAX} are allowed: split it"
        return await context.offload(things, refusal_of, request, ErrorCode.POLICY_VIOLATION, message)

    async def handle(allowed: Request) -> Values:
        return await answered(allowed, api.handler(context, allowed, peer))

    if request.name in mutations.STRICT_SINCE:
        quota = context.mutation_quotas.quota_of(context.image.entities, caller.principal, request.client_id)
        if quota is not None:
            return await mutations.within_quota(context, quota, request, things, handle)
    return await handle(request)


def _encoded(request: Request, values: Values) -> bytes:
    shown = with_short_messages(request.name, values)
    return encode_response(request.api_key, request.version, request.correlation_id, shown)
