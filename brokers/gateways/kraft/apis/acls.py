"""Admins' requests about ACLs (CreateAcls, DeleteAcls, DescribeAcls; KIP-11, 290)."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

import msgspec

from brokers.gateways.kraft.apis.outcomes import refused_with
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata import acl_numbers as numbers
from brokers.gateways.kraft.metadata.image import knows_networks_in_acls
from brokers.gateways.kraft.security.networks import is_notation, network_of
from brokers.gateways.shared.apis.asking import error_of, text
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode, RefusedError, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.acl import CLUSTER_NAME, Acl, AclFilter, acl_id_of, selected
from state.events import CreateAcls, DeleteAcls
from state.features import CIDR_SINCE, METADATA_VERSION

_NO_AUTHORIZER = "No Authorizer is configured: set authorizer.class.name on the gateways."
_RESOURCE = ("ResourceType", "ResourceName", "PatternType")
_PATTERNS = numbers.PATTERN_NAMES | {numbers.MATCH: "MATCH"}


async def create_acls(context: Context, request: Request, peer: Peer) -> Values:
    """Create ACLs. An ACL that is refused does not affect the others."""
    if not context.access.has_authorizer:
        return refusal_of(request, ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)
    knows_networks = knows_networks_in_acls(context.image)
    made = [_created(one, knows_networks=knows_networks) for one in request.values["Creations"]]
    acls = tuple(one for one in made if isinstance(one, Acl))
    answered: Values = {}
    if acls:
        [answer] = await context.ask_as_admin(request, [CreateAcls(time_ms=now_ms(), acls=acls)])
        answered = error_of(answer)
    return {"Results": [answered if isinstance(one, Acl) else refused_with(one) for one in made]}


def _created(creation: Values, *, knows_networks: bool) -> Acl | RefusedError:
    try:
        acl = numbers.acl_of(creation, "ResourcePatternType")
    except msgspec.ValidationError as error:
        return RefusedError(ErrorCode.INVALID_REQUEST, f"the ACL is invalid: {error}")
    if acl.resource_type == "CLUSTER" and acl.resource_name != CLUSTER_NAME:
        return RefusedError(
            ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        )
    if is_notation(acl.host) and not knows_networks:
        message = f"host {acl.host}: networks need {METADATA_VERSION} {CIDR_SINCE} (of Kafka 4.4) or later"
        return RefusedError(ErrorCode.UNSUPPORTED_VERSION, message)
    if is_notation(acl.host) and network_of(acl.host) is None:
        return RefusedError(ErrorCode.INVALID_REQUEST, f"host {acl.host}: a network is written as 10.0.0.0/8")
    return acl


async def delete_acls(context: Context, request: Request, peer: Peer) -> Values:
    """Delete the ACLs that filters select, and list for each filter the ACLs that it deleted."""
    if not context.access.has_authorizer:
        return refusal_of(request, ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)
    made = [_filter(one) for one in request.values["Filters"]]
    filters = tuple(one for one in made if isinstance(one, AclFilter))
    if not filters:
        return {"FilterResults": [refused_with(one) for one in made if isinstance(one, RefusedError)]}
    [answer] = await context.ask_as_admin(request, [DeleteAcls(time_ms=now_ms(), filters=filters)])
    if answer.error != "NONE":
        return refusal_of(request, code_of(answer.error), text(answer))
    deleted = answer.acls if isinstance(answer.acls, tuple) else ()
    results = await context.offload(len(filters) * len(deleted), _deleted, made, deleted)
    return {"FilterResults": results}


def _deleted(made: Sequence[AclFilter | RefusedError], deleted: Iterable[Acl]) -> list[Values]:
    by_id = {acl_id_of(acl): acl for acl in deleted}
    return [
        refused_with(one)
        if isinstance(one, RefusedError)
        else {"MatchingAcls": [numbers.values_of(acl) for acl in selected(by_id, one).values()]}
        for one in made
    ]


async def describe_acls(context: Context, request: Request, peer: Peer) -> Values:
    """List the ACLs that a filter selects, resource by resource."""
    if not context.access.has_authorizer:
        return refusal_of(request, ErrorCode.SECURITY_DISABLED, _NO_AUTHORIZER)
    wanted = _filter(request.values)
    if isinstance(wanted, RefusedError):
        return refusal_of(request, wanted.code, str(wanted))
    acls = context.image.acls
    return await context.offload(len(acls), _described, acls, wanted)


def _described(acls: Mapping[str, Acl], wanted: AclFilter) -> Values:
    listed = [numbers.values_of(acl) for acl in selected(acls, wanted).values()]
    of_resource = itemgetter(*_RESOURCE)
    return {
        "Resources": [
            dict(zip(_RESOURCE, resource, strict=True))
            | {"Acls": [{name: value for name, value in one.items() if name not in _RESOURCE} for one in some]}
            for resource, some in groupby(sorted(listed, key=of_resource), key=of_resource)
        ]
    }


def _filter(values: Values) -> AclFilter | RefusedError:
    """Read a filter. ``ANY`` and null match every value."""
    fields = {
        "resource_type": _name_of(numbers.RESOURCE_NAMES, values["ResourceTypeFilter"]),
        "resource_name": values["ResourceNameFilter"],
        "pattern_type": _name_of(_PATTERNS, values["PatternTypeFilter"]),
        "principal": values["PrincipalFilter"],
        "host": values["HostFilter"],
        "operation": _name_of(numbers.OPERATION_NAMES, values["Operation"]),
        "permission_type": _name_of(numbers.PERMISSION_NAMES, values["PermissionType"]),
    }
    try:
        return msgspec.convert(fields, AclFilter)
    except msgspec.ValidationError as error:
        return RefusedError(ErrorCode.INVALID_REQUEST, f"the filter is invalid: {error}")


def _name_of(names: Mapping[int, str], number: int) -> str | int | None:
    return None if number == numbers.ANY else names.get(number, number)
