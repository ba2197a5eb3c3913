"""The settings of topics, brokers, groups and subscriptions to clients' metrics (DescribeConfigs), for admins who ask
a gateway directly (KIP-919). Brokers answer from what they have read themselves.
"""

from collections.abc import Iterable, Iterator, Mapping

from brokers.gateways.kraft.apis.resources import holder_of, place_of
from brokers.gateways.kraft.context import Context, config_of
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.image import (
    ALL_BROKERS,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
)
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.gateways.shared.apis.topic_defaults import DEFAULT, DEFAULTS, OF_TOPIC, Effective, Origin, effective
from brokers.wire.errors import ErrorCode, RefusedError
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from state.broker_setting_types import BOOLEAN, INT, LIST, STRING, UNKNOWN, broker_setting_type, is_secret
from state.group_settings import GROUP_DEFAULTS, GROUP_NUMBERS, GROUP_WORDS
from state.topic_name import complaint_about_topic_name

# The description of a topic takes two kilobytes, and its name in a request may take a hundredth of that.
RESOURCES_MAX = 10_000
# DescribeConfigsResponse.ConfigSource
_OF_BROKER, _OF_ALL_BROKERS, _OF_CLIENT_METRICS, _OF_GROUP = 2, 3, 7, 8
# ``ClientMetricsConfigs`` of Kafka 4.1
CLIENT_METRICS_DEFAULTS = {"interval.ms": "300000", "match": "", "metrics": ""}
_CLIENT_METRICS_TYPES = {"interval.ms": INT, "match": LIST, "metrics": LIST}
_GROUP_TYPES = dict.fromkeys(GROUP_NUMBERS, INT) | dict.fromkeys(GROUP_WORDS, STRING)


async def describe_configs(context: Context, request: Request, peer: Peer) -> Values:
    """Describe the settings of resources, each by itself. A resource that is named several times is described once."""
    return await context.offload(10 * len(request.values["Resources"]), _described, context, request)


def _described(context: Context, request: Request) -> Values:
    wanted = _wanted(request.values["Resources"])
    if len(wanted) > RESOURCES_MAX:
        message = f"the request names {len(wanted)} resources, and {RESOURCES_MAX} are allowed: split it"
        return refusal_of(request, ErrorCode.POLICY_VIOLATION, message)
    has_synonyms = bool(request.values.get("IncludeSynonyms"))
    return {"Results": [_result(context, place, keys, has_synonyms) for place, keys in wanted.items()]}


def _wanted(resources: Iterable[Values]) -> dict[tuple[int, str], set[str]]:
    """Return which settings of each resource are wanted. No names stand for all settings."""
    wanted: dict[tuple[int, str], set[str]] = {}
    for resource in resources:
        place, keys = place_of(resource), {*(resource["ConfigurationKeys"] or ())}
        if not keys or not wanted.setdefault(place, keys):
            wanted[place] = set()
        else:
            wanted[place] |= keys
    return wanted


def _result(context: Context, place: tuple[int, str], keys: set[str], has_synonyms: bool) -> Values:
    kind, name = place
    of = {"ResourceType": kind, "ResourceName": name}
    try:
        settings = list(_settings(context, *holder_of(of)))
    except RefusedError as refusal:
        return of | {"ErrorCode": refusal.code, "ErrorMessage": str(refusal), "Configs": []}
    configs = [_config(kind, one, has_synonyms) for one in settings if not keys or one.name in keys]
    return of | {"ErrorCode": ErrorCode.NONE, "Configs": configs}


def _settings(context: Context, kind: int, name: str) -> Iterator[Effective]:
    held = config_of(context.image, kind, name)
    if kind == TOPIC_RESOURCE:
        complaint = complaint_about_topic_name(name)
        if complaint is not None:
            raise RefusedError(ErrorCode.INVALID_TOPIC_EXCEPTION, complaint)
        if context.topic_named(name) is None:
            raise RefusedError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        found = effective(held, context.settings_of_all_brokers())
        known = {one.name for one in found}
        yield from found
        yield from _with_source({key: value for key, value in held.items() if key not in known}, OF_TOPIC)
    elif kind == BROKER_RESOURCE:
        # A controller does not know brokers' files. It describes itself and the settings of all brokers together.
        if name not in (ALL_BROKERS, str(context.identity.gateway)):
            described = f"node {context.identity.gateway} and the settings of all brokers"
            raise RefusedError(ErrorCode.INVALID_REQUEST, f"this gateway describes only {described}, not node {name}")
        yield from _with_source(held, _OF_ALL_BROKERS if name == ALL_BROKERS else _OF_BROKER)
    elif kind == CLIENT_METRICS_RESOURCE:
        if not name:
            raise RefusedError(ErrorCode.INVALID_REQUEST, "the name of the subscription is empty")
        yield from _with_source(held, _OF_CLIENT_METRICS)
        # Kafka names no origin of these defaults, but it does so for groups.
        yield from (
            Effective(key, value, DEFAULT, ()) for key, value in CLIENT_METRICS_DEFAULTS.items() if key not in held
        )
    elif kind == GROUP_RESOURCE:
        if not name:
            raise RefusedError(ErrorCode.INVALID_REQUEST, "the name of the group is empty")
        yield from _with_source(held, _OF_GROUP)
        yield from _with_source({key: value for key, value in GROUP_DEFAULTS.items() if key not in held}, DEFAULT)
    else:
        raise RefusedError(ErrorCode.INVALID_REQUEST, f"there are no resources of type {kind}")


def _with_source(held: Mapping[str, str], source: int) -> Iterator[Effective]:
    return (Effective(name, value, source, (Origin(name, value, source),)) for name, value in sorted(held.items()))


def _config(resource_type: int, setting: Effective, has_synonyms: bool) -> Values:
    hidden = resource_type == BROKER_RESOURCE and is_secret(setting.name)
    origins = setting.origins if has_synonyms else ()
    return {
        "Name": setting.name,
        "Value": None if hidden else setting.value,
        "ReadOnly": False,
        "ConfigSource": setting.source,
        "IsSensitive": hidden,
        "Synonyms": [
            {"Name": one.name, "Value": None if hidden else one.value, "Source": one.source} for one in origins
        ],
        "ConfigType": _type_of(resource_type, setting.name),
        "Documentation": None,
    }


def _type_of(resource_type: int, name: str) -> int:
    """Return the type of a setting (``DescribeConfigsResponse.ConfigType`` of Kafka 4.1)."""
    if resource_type == BROKER_RESOURCE:
        return broker_setting_type(name)
    if resource_type == TOPIC_RESOURCE and (default := DEFAULTS.get(name)):
        if default.synonyms:
            return broker_setting_type(default.synonyms[0][0])
        return BOOLEAN if default.value == "false" else LIST
    types = {GROUP_RESOURCE: _GROUP_TYPES, CLIENT_METRICS_RESOURCE: _CLIENT_METRICS_TYPES}
    return types.get(resource_type, {}).get(name, UNKNOWN)
