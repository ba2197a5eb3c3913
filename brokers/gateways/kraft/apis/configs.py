"""Admins' requests about settings (IncrementalAlterConfigs, AlterConfigs; KIP-339)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from brokers.gateways.kraft.context import Context, config_of, text
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.image import ALL_BROKERS, BROKER_RESOURCE, TOPIC_RESOURCE
from brokers.gateways.kraft.slices import in_slices
from brokers.gateways.kraft.topic_settings import complaint_about, is_list
from brokers.wire.errors import ErrorCode, RefusedError, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import Answer
from state.events import AlterConfig

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
# The default of a list-valued setting, if it is not empty.
_DEFAULTS = {"cleanup.policy": "delete"}


async def incremental_alter_configs(context: Context, request: Request, peer: Peer) -> Values:
    """Set or remove settings, and add items to lists or remove them."""

    def changes(resource: Values) -> dict[str, str | None]:
        held = config_of(context.image, resource["ResourceType"], resource["ResourceName"])
        changed: dict[str, str | None] = {}
        for one in resource["Configs"]:
            if one["Name"] in changed:
                raise RefusedError(ErrorCode.INVALID_REQUEST, f"{one['Name']} is set twice")
            is_topics = resource["ResourceType"] == TOPIC_RESOURCE
            if one["ConfigOperation"] in (_APPEND, _SUBTRACT) and is_topics and not is_list(one["Name"]):
                raise RefusedError(ErrorCode.INVALID_CONFIG, f"{one['Name']} is not a list")
            default = _DEFAULTS.get(one["Name"], "") if is_topics else ""
            changed[one["Name"]] = _after(held.get(one["Name"], default), one)
        return changed

    return await _alter(context, request, changes)


async def alter_configs(context: Context, request: Request, peer: Peer) -> Values:
    """Set all settings of resources; those that are not named are removed."""

    def changes(resource: Values) -> dict[str, str | None]:
        held = config_of(context.image, resource["ResourceType"], resource["ResourceName"])
        return dict.fromkeys(held) | {one["Name"]: one["Value"] for one in resource["Configs"]}

    return await _alter(context, request, changes)


async def _alter(context: Context, request: Request, changes: Any) -> Values:
    """Ask for all changes at once. Other requests cannot change these settings between the reading and the change."""
    body = request.values
    named = [(resource["ResourceType"], resource["ResourceName"]) for resource in body["Resources"]]
    times = Counter(named)
    outcomes: dict[tuple[int, str], AlterConfig | RefusedError] = {}
    async with context.locks.hold(named):
        async for place, resource in in_slices(zip(named, body["Resources"], strict=True)):
            try:
                if times[place] > 1:
                    raise RefusedError(ErrorCode.INVALID_REQUEST, f"{place[1]} is named {times[place]} times")
                outcomes[place] = _event(resource, changes(resource), body["ValidateOnly"])
            except RefusedError as refusal:
                outcomes[place] = refusal
        alterations = [one for one in outcomes.values() if isinstance(one, AlterConfig)]
        answers = await context.ask_as_admin(request, alterations)
    return await context.offload(len(outcomes), _response, outcomes, iter(answers))


def _response(outcomes: Mapping[tuple[int, str], AlterConfig | RefusedError], answers: Iterator[Answer]) -> Values:
    responses = []
    for (kind, name), outcome in outcomes.items():
        response = {"ResourceType": kind, "ResourceName": name}
        if isinstance(outcome, RefusedError):
            responses.append(response | {"ErrorCode": outcome.code, "ErrorMessage": str(outcome)})
        else:
            answer = next(answers)
            responses.append(response | {"ErrorCode": code_of(answer.error), "ErrorMessage": text(answer)})
    return {"Responses": responses}


def _event(resource: Values, config: dict[str, str | None], validate_only: bool) -> AlterConfig:
    kind, name = resource["ResourceType"], resource["ResourceName"]
    if kind == TOPIC_RESOURCE:
        for key, value in config.items():
            # Any setting may be removed, even one with an invalid name.
            if value is not None and (complaint := complaint_about(key, value)):
                raise RefusedError(ErrorCode.INVALID_CONFIG, complaint)
    fields: dict[str, Any] = {"time_ms": now_ms(), "config": config, "validate_only": validate_only}
    if kind == TOPIC_RESOURCE:
        return AlterConfig(entity="topic", name=name, **fields)
    if kind == BROKER_RESOURCE and name == ALL_BROKERS:
        return AlterConfig(entity="cluster", **fields)
    if kind == BROKER_RESOURCE:
        return AlterConfig(entity="broker", name=name, **fields)
    raise RefusedError(ErrorCode.INVALID_REQUEST, f"resources of type {kind} have no settings here")


def _after(held: str, one: Values) -> str | None:
    """Return a setting after one operation; None if it is removed."""
    operation, value = one["ConfigOperation"], one["Value"]
    if operation == _DELETE:
        return None
    if value is None:
        raise RefusedError(ErrorCode.INVALID_CONFIG, f"{one['Name']} has no value")
    if operation == _SET:
        return str(value)
    listed, given = [item for item in held.split(",") if item], value.split(",")
    if operation == _APPEND:
        return ",".join([*listed, *(item for item in given if item not in listed)])
    if operation == _SUBTRACT:
        return ",".join(item for item in listed if item not in given)
    raise RefusedError(ErrorCode.INVALID_REQUEST, f"there is no operation {operation} on a setting")
