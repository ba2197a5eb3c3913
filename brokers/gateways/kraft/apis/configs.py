"""Admins' requests about settings (IncrementalAlterConfigs, AlterConfigs; KIP-339)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from brokers.gateways.kraft.apis.broker_lists import broker_lists_in
from brokers.gateways.kraft.apis.outcomes import responses_to
from brokers.gateways.kraft.apis.resources import holder_of, place_of
from brokers.gateways.kraft.context import Context, config_of
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.entity_values import ENTITY_RESOURCES
from brokers.gateways.kraft.metadata.image import (
    ALL_BROKERS,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    knows_cordoning,
)
from brokers.gateways.shared.apis.topic_defaults import DEFAULTS
from brokers.gateways.shared.slices import in_slices
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.events import AlterConfig, AlterEntity
from state.features import CORDONING_SINCE, METADATA_VERSION
from state.ids import broker_named
from state.topic_name import complaint_about_topic_name
from state.topic_settings import complaint_about, is_list

_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_BROKER_LOGGER_RESOURCE = 8
_CORDONED = "cordoned.log.dirs"
_RESOURCES = (TOPIC_RESOURCE, BROKER_RESOURCE, _BROKER_LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE)
# The settings of these resources make a metadata entity: its type, and what names it.
_ENTITIES = {kind: (entity_type, part) for entity_type, (kind, part) in ENTITY_RESOURCES.items()}
_Event = AlterConfig | AlterEntity


async def incremental_alter_configs(context: Context, request: Request, peer: Peer) -> Values:
    """Set or remove settings, and add items to lists or remove them."""

    of_brokers = broker_lists_in(context.brokers_metadata_version)

    def changes(resource: Values) -> dict[str, str | None]:
        held = config_of(context.image, *holder_of(resource))
        changed: dict[str, str | None] = {}
        for one in resource["Configs"]:
            name = one["Name"]
            if name in changed:
                raise RefusedError(ErrorCode.INVALID_REQUEST, f"{name} is set twice")
            default = _default_of_list(resource["ResourceType"], name, of_brokers)
            if one["ConfigOperation"] in (_APPEND, _SUBTRACT) and default is None:
                raise RefusedError(ErrorCode.INVALID_CONFIG, f"{name} is not a list")
            changed[name] = _after(held.get(name, default or ""), one)
        return changed

    return await _alter(context, request, changes)


def _default_of_list(kind: int, name: str, of_brokers: Mapping[str, str]) -> str | None:
    """Return what stands for a list that is not set; None if the setting is not a list.

    Kafka's controller knows only the lists of topics and brokers, so nothing is added to those of a subscription.
    """
    if kind in _ENTITIES:
        return None
    if kind == TOPIC_RESOURCE:
        return DEFAULTS[name].value if is_list(name) else None
    return of_brokers.get(name)


async def alter_configs(context: Context, request: Request, peer: Peer) -> Values:
    """Set all settings of resources. A setting that is not named is removed."""

    def changes(resource: Values) -> dict[str, str | None]:
        held = config_of(context.image, *holder_of(resource))
        return dict.fromkeys(held) | {one["Name"]: one["Value"] for one in resource["Configs"]}

    return await _alter(context, request, changes)


async def _alter(context: Context, request: Request, changes: Any) -> Values:
    """Request all changes at once. No other request changes these settings between the reading and the change."""
    body = request.values
    named = [place_of(resource) for resource in body["Resources"]]
    holders = [holder_of(resource) for resource in body["Resources"]]
    times = Counter(holders)
    outcomes: dict[tuple[int, str], _Event | RefusedError] = {}
    metadata_version = context.brokers_metadata_version
    async with context.locks.hold(holders):
        async for place, holder, resource in in_slices(zip(named, holders, body["Resources"], strict=True)):
            try:
                if times[holder] > 1:
                    raise RefusedError(ErrorCode.INVALID_REQUEST, f"{place[1]} is named {times[holder]} times")
                _check_resource(context, *holder)
                changed = changes(resource)
                _check_cordoning(context, holder[0], changed)
                outcomes[place] = _event(resource, changed, metadata_version, body["ValidateOnly"])
            except RefusedError as refusal:
                outcomes[place] = refusal
        responses = await responses_to(
            context,
            request,
            outcomes,
            lambda place, error: {"ResourceType": place[0], "ResourceName": place[1]} | error,
        )
        return {"Responses": responses}


def _check_resource(context: Context, kind: int, name: str) -> None:
    """Refuse a resource that cannot have settings. The engine checks whether a topic exists."""
    if kind not in _RESOURCES:
        raise RefusedError(ErrorCode.UNSUPPORTED_VERSION, f"there are no resources of type {kind}")
    if kind == TOPIC_RESOURCE and not name:
        raise RefusedError(ErrorCode.INVALID_REQUEST, "a topic's name is expected: topics have no common settings")
    if kind == TOPIC_RESOURCE and (complaint := complaint_about_topic_name(name)):
        raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, complaint)
    if kind == BROKER_RESOURCE and name != ALL_BROKERS:
        node = broker_named(name)
        if node is None:
            raise RefusedError(ErrorCode.INVALID_REQUEST, "name the broker by its id")
        if node not in context.image.brokers and node not in {voter.voter for voter in context.identity.voters}:
            raise RefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"there is no node {name}")


def _check_cordoning(context: Context, kind: int, config: Mapping[str, str | None]) -> None:
    """Refuse a list that brokers would not act on (``ConfigurationControlManager.isCordonedLogDirsDisabled``)."""
    if kind == BROKER_RESOURCE and config.get(_CORDONED) is not None and not knows_cordoning(context.image):
        message = f"{_CORDONED} needs {METADATA_VERSION} {CORDONING_SINCE} (that of Kafka 4.3) or later"
        raise RefusedError(ErrorCode.INVALID_CONFIG, message)


def _event(resource: Values, config: dict[str, str | None], metadata_version: int, validate_only: bool) -> _Event:
    kind, name = resource["ResourceType"], resource["ResourceName"]
    if kind == TOPIC_RESOURCE:
        for key, value in config.items():
            # Any setting may be removed, even one with an invalid name.
            if value is not None and (complaint := complaint_about(key, value, metadata_version)):
                raise RefusedError(ErrorCode.INVALID_CONFIG, complaint)
    values: dict[str, Any] = {**config}
    fields: dict[str, Any] = {"time_ms": now_ms(), "validate_only": validate_only}
    if kind in _ENTITIES:
        entity_type, part = _ENTITIES[kind]
        return AlterEntity(entity_type=entity_type, names={part: name}, values=values, **fields)
    if kind == TOPIC_RESOURCE:
        return AlterConfig(entity="topic", name=name, config=values, **fields)
    if kind == BROKER_RESOURCE and name == ALL_BROKERS:
        return AlterConfig(entity="cluster", config=values, **fields)
    if kind == BROKER_RESOURCE:
        return AlterConfig(entity="broker", name=name, config=values, **fields)
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
    listed, given = [item for item in held.split(",") if item], _items(value)
    if operation == _APPEND:
        known = {*listed}
        return ",".join([*listed, *dict.fromkeys(item for item in given if item not in known)])
    if operation == _SUBTRACT:
        return ",".join(_without(listed, given))
    raise RefusedError(ErrorCode.INVALID_REQUEST, f"there is no operation {operation} on a setting")


def _items(value: str) -> list[str]:
    """Split a list as Java does: empty items at its end do not count, but an empty text is one empty item."""
    bare = value.rstrip(",")
    return bare.split(",") if bare or not value else []


def _without(listed: list[str], given: list[str]) -> Iterator[str]:
    """Yield the items of a list that are not in ``given``. An item that is given once is removed once."""
    left = Counter(given)
    for item in listed:
        if left[item]:
            left[item] -= 1
        else:
            yield item
