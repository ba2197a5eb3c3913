"""The part of a request that its caller may do: all, nothing, or some of its topics and resources.

Some requests name many topics, and Kafka refuses each by itself. So a request is cut down to what is allowed, and its
response gets the refusals of the rest.
"""

from collections.abc import Callable
from typing import NamedTuple

from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.metadata.image import MetadataImage
from brokers.gateways.kraft.security.authorization import SETTINGS_ERRORS
from brokers.gateways.kraft.security.authorizer import Action
from brokers.gateways.kraft.security.operations import (
    FOR_ALL_TOPICS,
    FREE,
    ON_CLUSTER,
    ON_SETTINGS,
    ON_TOPICS,
    on_cluster,
    on_settings,
    on_topic,
)
from brokers.gateways.kraft.security.token_requests import REQUESTS, action_of, is_of_own_token
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode
from brokers.wire.layout import ZERO_UUID
from brokers.wire.schema import Values

_TOPIC_ERROR = ErrorCode.TOPIC_AUTHORIZATION_FAILED
# The list of a request's response that has an entry for each topic or resource.
_ANSWERED_IN = {
    "AlterConfigs": "Responses",
    "CreatePartitions": "Results",
    "CreateTopics": "Topics",
    "DeleteTopics": "Responses",
    "DescribeConfigs": "Results",
    "IncrementalAlterConfigs": "Responses",
}
# Returns whether an action is allowed. A refusal is not audited if ``is_quiet``.
May = Callable[..., bool]


class Permitted(NamedTuple):
    """The permitted part of a request, and the answers to the rest."""

    # None if nothing of it may be done.
    request: Request | None
    # In the response's list of topics or resources; or the whole response, if ``is_whole``.
    refused: list[Values]
    is_whole: bool = False
    # Topics that may be created by a caller who may not see their settings.
    hidden: frozenset[str] = frozenset()
    # The name of the response's list.
    refused_in: str = ""

    def response(self, values: Values | None) -> Values:
        """Join the response to what was allowed with the refusals; ``values`` are None if nothing was."""
        if self.is_whole:
            return self.refused[0]
        if values is None:
            return {self.refused_in: self.refused}
        if not self.refused and not self.hidden:
            return values
        answered = [
            _without_settings(one) if one.get("Name") in self.hidden else one for one in values[self.refused_in]
        ]
        return values | {self.refused_in: answered + self.refused}


def _without_settings(topic: Values) -> Values:
    if topic["ErrorCode"] != ErrorCode.NONE:
        return topic
    nothing = {"NumPartitions": -1, "ReplicationFactor": -1, "Configs": None}
    return topic | nothing | {"TopicConfigErrorCode": _TOPIC_ERROR}


def permitted(request: Request, image: MetadataImage, may: May) -> Permitted:
    """Return which parts of a request its caller may do."""
    name = request.name
    if name in FREE:
        return Permitted(request, [])
    if name in ON_SETTINGS:
        return _of_settings(request, may)
    if name in REQUESTS:
        if is_of_own_token(request) or may(action_of(request)):
            return Permitted(request, [])
        return Permitted(None, [refusal_of(request, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)], is_whole=True)
    if name not in ON_TOPICS:
        # A request that the table does not know is for callers who may change the cluster.
        if may(on_cluster(ON_CLUSTER.get(name, "ALTER"))):
            return Permitted(request, [])
        return Permitted(None, [refusal_of(request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)], is_whole=True)
    if name in FOR_ALL_TOPICS and may(on_cluster(ON_TOPICS[name]), is_quiet=True):
        return _without_hidden(request, may) if name == "CreateTopics" else Permitted(request, [])
    if name == "DeleteTopics":
        return _of_deleted_topics(request, image, may)
    return _of_topics(request, may)


def _of_topics(request: Request, may: May) -> Permitted:
    topics = request.values["Topics"]
    allowed = {name: may(on_topic(request.name, name)) for name in dict.fromkeys(topic["Name"] for topic in topics)}
    refused = [
        {"Name": name, "ErrorCode": _TOPIC_ERROR, "ErrorMessage": "Authorization failed."}
        for name, is_allowed in allowed.items()
        if not is_allowed
    ]
    found = _cut(request, {"Topics": [topic for topic in topics if allowed[topic["Name"]]]}, refused)
    if request.name != "CreateTopics" or found.request is None:
        return found
    return _without_hidden(found.request, may)._replace(refused=refused)


def _without_hidden(request: Request, may: May) -> Permitted:
    names = {topic["Name"] for topic in request.values["Topics"]}
    hidden = {name for name in names if not may(Action("DESCRIBE_CONFIGS", "TOPIC", name), is_quiet=True)}
    return Permitted(request, [], hidden=frozenset(hidden), refused_in=_ANSWERED_IN[request.name])


def _of_settings(request: Request, may: May) -> Permitted:
    allowed, refused = [], []
    for resource in request.values["Resources"]:
        action = on_settings(request.name, resource)
        # The request's handler refuses a resource that has no settings.
        if action is None or may(action):
            allowed.append(resource)
            continue
        code = SETTINGS_ERRORS.get(resource["ResourceType"], ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        named = {name: resource[name] for name in ("ResourceType", "ResourceName")}
        nothing: Values = {"Configs": []} if request.name == "DescribeConfigs" else {}
        refused.append(named | {"ErrorCode": code, "ErrorMessage": None} | nothing)
    return _cut(request, {"Resources": allowed}, refused)


def _of_deleted_topics(request: Request, image: MetadataImage, may: May) -> Permitted:
    """Cut a deletion down. A caller who may not describe a topic learns neither that it exists nor its name."""
    refused: list[Values] = []

    def is_allowed(name: str | None, topic_id: str) -> bool:
        if name is None:
            held = image.topics.get(topic_id)
            if held is None:
                refused.append({"Name": None, "TopicId": topic_id, "ErrorCode": ErrorCode.UNKNOWN_TOPIC_ID})
                return False
            name = held.name
            if may(on_topic(request.name, name)):
                return True
            shown = name if may(Action("DESCRIBE", "TOPIC", name), is_quiet=True) else None
            refused.append({"Name": shown, "TopicId": topic_id, "ErrorCode": _TOPIC_ERROR})
            return False
        if may(on_topic(request.name, name)):
            return True
        is_absent = name not in image.topic_ids and may(Action("DESCRIBE", "TOPIC", name), is_quiet=True)
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_absent else _TOPIC_ERROR
        refused.append({"Name": name, "TopicId": ZERO_UUID, "ErrorCode": error})
        return False

    names = [name for name in request.values["TopicNames"] if is_allowed(name, ZERO_UUID)]
    topics = [one for one in request.values["Topics"] if is_allowed(one["Name"], one["TopicId"])]
    return _cut(request, {"TopicNames": names, "Topics": topics}, refused)


def _cut(request: Request, allowed: dict[str, list[Values]] | dict[str, list[str]], refused: list[Values]) -> Permitted:
    if not refused:
        return Permitted(request, [])
    answered_in = _ANSWERED_IN[request.name]
    if not any(allowed.values()):
        return Permitted(None, refused, refused_in=answered_in)
    return Permitted(request._replace(values=request.values | allowed), refused, refused_in=answered_in)
