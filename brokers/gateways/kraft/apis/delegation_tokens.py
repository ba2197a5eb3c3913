"""Requests about delegation tokens (CreateDelegationToken and the like; KIP-48). Brokers answer
DescribeDelegationToken themselves.

The engine stores tokens and does not know the key. A gateway makes a token's id, and computes the token's HMAC from the
id and the key.
"""

import base64
import uuid
from collections.abc import Mapping

import msgspec
import structlog

from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.acl_numbers import RESOURCE_TYPES
from brokers.gateways.kraft.metadata.entity_values import renewers_of
from brokers.gateways.kraft.security.token_limits import check_limits
from brokers.gateways.kraft.security.token_requests import owner_of
from brokers.wire.errors import ErrorCode, RefusedError, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.entity import TOKEN, TOKEN_EXPIRY, TOKEN_ID, Entity
from state.events import AlterEntity

logger = structlog.get_logger()

_USER = "User"
# From this version on a token may be made for another owner (KIP-373).
_REQUESTER_VERSION = 3
_TIME_MS_MAX = 2**63 - 1


async def create_delegation_token(context: Context, request: Request, peer: Peer) -> Values:
    """Make a token for the principal that asks, or for another owner."""
    owner, body = owner_of(request), request.values
    whose = _principals(request, owner)
    if not context.access.token_key.is_enabled:
        return whose | {"ErrorCode": ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED}
    if any(one["PrincipalType"] != _USER for one in body["Renewers"]):
        return whose | {"ErrorCode": ErrorCode.INVALID_PRINCIPAL_TYPE}
    settings, issued_ms = context.settings, now_ms()
    longest_ms = settings.delegation_token_max_lifetime_ms
    lifetime_ms = min(longest_ms, body["MaxLifetimeMs"]) if body["MaxLifetimeMs"] > 0 else longest_ms
    max_ms = issued_ms + lifetime_ms
    expiry_ms = min(max_ms, issued_ms + settings.delegation_token_expiry_time_ms)
    token_id = _new_id()
    renewers = [f"{one['PrincipalType']}:{one['PrincipalName']}" for one in body["Renewers"]]
    values = {
        "owner": owner,
        "requester": request.principal,
        "renewers": msgspec.json.encode(renewers).decode(),
        "issue_timestamp_ms": str(issued_ms),
        "max_timestamp_ms": str(max_ms),
        TOKEN_EXPIRY: str(expiry_ms),
    }
    error = await _added(context, request, token_id, values)
    if error != ErrorCode.NONE:
        return whose | {"ErrorCode": error}
    times = {"IssueTimestampMs": issued_ms, "ExpiryTimestampMs": expiry_ms, "MaxTimestampMs": max_ms}
    made = {"TokenId": token_id, "Hmac": context.access.token_key.hmac_of(token_id)}
    return whose | times | made | {"ErrorCode": ErrorCode.NONE}


async def renew_delegation_token(context: Context, request: Request, peer: Peer) -> Values:
    """Extend a token's life, up to its greatest age."""
    try:
        token, now = await _found(context, request), now_ms()
        _check_time(token, now)
        _check_renewer(token, request.principal)
    except RefusedError as refusal:
        return {"ErrorCode": refusal.code}
    longest_ms = context.settings.delegation_token_expiry_time_ms
    asked_ms = request.values["RenewPeriodMs"]
    return await _moved(context, request, token, now + (min(longest_ms, asked_ms) if asked_ms > 0 else longest_ms))


async def expire_delegation_token(context: Context, request: Request, peer: Peer) -> Values:
    """Set the time at which a token ends. A negative period ends it at once."""
    period_ms = request.values["ExpiryTimePeriodMs"]
    try:
        token, now = await _found(context, request), now_ms()
        _check_renewer(token, request.principal)
        if period_ms >= 0:
            _check_time(token, now)
    except RefusedError as refusal:
        return {"ErrorCode": refusal.code}
    if period_ms >= 0:
        return await _moved(context, request, token, now + period_ms)
    error = await _asked(context, request, str(token.names[TOKEN_ID]), dict.fromkeys(token.values))
    return {"ErrorCode": error, "ExpiryTimestampMs": now}


async def _added(context: Context, request: Request, token_id: str, values: Mapping[str, str]) -> ErrorCode:
    """Add a token, if its owner may have one more. Requests for one owner run one after another."""
    token = Entity(entity_type=TOKEN, names={TOKEN_ID: token_id}, values=dict(values))
    async with context.locks.hold([(RESOURCE_TYPES["DELEGATION_TOKEN"], values["owner"])]):
        held = context.image.entities
        try:
            await context.offload(len(held), check_limits, token, held.values())
        except RefusedError as refusal:
            logger.warning("token refused", why=str(refusal), principal=request.principal)
            return refusal.code
        return await _asked(context, request, token_id, values)


def _new_id() -> str:
    """Make a random id as Kafka prints a Uuid. It never begins with a dash, which tools would take for an option."""
    first, *rest = uuid.uuid4().bytes
    return base64.urlsafe_b64encode(bytes([first & 0x7F, *rest])).rstrip(b"=").decode()


async def _found(context: Context, request: Request) -> Entity:
    """Find the token whose HMAC a request carries. Raises ``RefusedError``."""
    key, entities = context.access.token_key, context.image.entities
    if not key.is_enabled:
        raise RefusedError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)
    token = await context.offload(len(entities), key.token_of, request.values["Hmac"], entities)
    if token is None:
        raise RefusedError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_time(token: Entity, now: int) -> None:
    if int(token.values["max_timestamp_ms"]) < now or int(token.values[TOKEN_EXPIRY]) < now:
        raise RefusedError(ErrorCode.DELEGATION_TOKEN_EXPIRED)


def _check_renewer(token: Entity, principal: str) -> None:
    if principal != token.values["owner"] and principal not in renewers_of(token.values):
        raise RefusedError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


async def _moved(context: Context, request: Request, token: Entity, expiry_ms: int) -> Values:
    """Change the time at which a token ends."""
    expiry_ms = min(int(token.values["max_timestamp_ms"]), expiry_ms, _TIME_MS_MAX)
    error = await _asked(context, request, str(token.names[TOKEN_ID]), {TOKEN_EXPIRY: str(expiry_ms)})
    return {"ErrorCode": error, "ExpiryTimestampMs": expiry_ms if error == ErrorCode.NONE else 0}


async def _asked(context: Context, request: Request, token_id: str, values: Mapping[str, str | None]) -> ErrorCode:
    names: dict[str, str | None] = {TOKEN_ID: token_id}
    event = AlterEntity(time_ms=now_ms(), entity_type=TOKEN, names=names, values=dict(values))
    [answer] = await context.ask_as_admin(request, [event])
    return code_of(answer.error)


def _principals(request: Request, owner: str) -> Values:
    """Return the fields that name the token's owner, and in versions that have them, the requester's."""
    kind, _, name = owner.partition(":")
    whose = {"PrincipalType": kind, "PrincipalName": name}
    if request.version < _REQUESTER_VERSION:
        return whose
    kind, _, name = request.principal.partition(":")
    return whose | {"TokenRequesterPrincipalType": kind, "TokenRequesterPrincipalName": name}
