"""Who may ask for delegation tokens (``ControllerApis.allowTokenRequests``). Pure.

A token lets its holder act as its owner. Every user may have tokens of their own. A caller that logged in with a token,
or has not proved a principal, gets none.
"""

from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.security.authorizer import Action
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values

CREATION = "CreateDelegationToken"
REQUESTS = frozenset({CREATION, "RenewDelegationToken", "ExpireDelegationToken"})


def owner_of(request: Request) -> str:
    """Return the principal for which a token is requested: the one that is named, or the requester."""
    # Before version 3 a request names no owner.
    name = request.values.get("OwnerPrincipalName")
    return f"{request.values['OwnerPrincipalType']}:{name}" if name else request.principal


def is_of_own_token(request: Request) -> bool:
    """Return whether a request about tokens needs no permission. Renewals are checked with the token itself."""
    return request.name in REQUESTS and (request.name != CREATION or owner_of(request) == request.principal)


def action_of(request: Request) -> Action:
    """Return the action that allows a request for another owner's token."""
    return Action("CREATE_TOKENS", "USER", owner_of(request))


def refused_token_request(request: Request, *, is_token: bool) -> Values | None:
    """Return the refusal of a request about tokens without a principal, or with a token; None for any other one."""
    if request.name in REQUESTS and (is_token or not request.principal):
        return refusal_of(request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
    return None
