"""Admins' requests about client quotas (AlterClientQuotas; KIP-546). Brokers answer requests that describe quotas."""

from collections import Counter

from brokers.gateways.kraft.apis.outcomes import responses_to
from brokers.gateways.kraft.context import Context
from brokers.gateways.kraft.messages import Request
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.entity import entity_id_of
from state.events import AlterEntity

Named = tuple[tuple[str, str | None], ...]


async def alter_client_quotas(context: Context, request: Request, peer: Peer) -> Values:
    """Set and remove quotas of users, client-ids and addresses, each entity by itself."""
    entries = request.values["Entries"]
    names = [tuple((one["EntityType"], one["EntityName"]) for one in entry["Entity"]) for entry in entries]
    ids = [entity_id_of("client_quota", dict(one)) for one in names]
    times = Counter(ids)
    outcomes: dict[Named, AlterEntity | RefusedError] = {}
    for entry, one, entity_id in zip(entries, names, ids, strict=True):
        try:
            if times[entity_id] > 1:
                raise RefusedError(ErrorCode.INVALID_REQUEST, "the request names this entity more than once")
            outcomes[one] = _event(entry, one, request.values["ValidateOnly"])
        except RefusedError as refusal:
            outcomes[one] = refusal
    return {"Entries": await responses_to(context, request, outcomes, _response)}


def _response(names: Named, error: Values) -> Values:
    return error | {"Entity": [{"EntityType": part, "EntityName": name} for part, name in names]}


def _event(entry: Values, names: Named, validate_only: bool) -> AlterEntity:
    if len(dict(names)) < len(names):
        raise RefusedError(ErrorCode.INVALID_REQUEST, "Invalid client quota entity: a type of entity is named twice")
    values: dict[str, float | None] = {}
    for one in entry["Ops"]:
        if one["Key"] in values:
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"Duplicate quota key {one['Key']}")
        values[one["Key"]] = None if one["Remove"] else one["Value"]
    return AlterEntity(
        time_ms=now_ms(),
        entity_type="client_quota",
        names=dict(names),
        # As text, because JSON has no infinity.
        values={key: None if value is None else repr(value) for key, value in values.items()},
        validate_only=validate_only,
    )
