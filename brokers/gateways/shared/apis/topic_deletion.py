"""Admins' requests to delete topics (DeleteTopics)."""

from collections.abc import Sequence
from typing import NamedTuple

from brokers.gateways.shared.apis.asking import Asking, NamedTopic, error_of
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode
from brokers.wire.layout import ZERO_UUID
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import Answer
from state.events import DeleteTopic
from state.topic_name import has_length_of_a_topic


class _Named(NamedTuple):
    """A topic as a request names it: by its name, or by its id."""

    name: str | None
    topic_id: str


async def delete_topics(context: Asking, request: Request, peer: Peer) -> Values:
    """Delete topics by name or by id. A topic that is named twice stays, and is answered once.

    The engine is also asked about names that the metadata log no longer has: their deletion may be unfinished, and is
    tried again.
    """
    body = request.values
    named = [_Named(name, ZERO_UUID) for name in body["TopicNames"]]
    named += [_Named(one["Name"], one["TopicId"]) for one in body["Topics"]]
    # One topic may be named by its name and by its id.
    ways: dict[str, list[_Named]] = {}
    for one in named:
        topic = _topic(context, one)
        ways.setdefault(one.name or one.topic_id if topic is None else topic.topic_id, []).append(one)
    topics = {key: _topic(context, names[0]) for key, names in ways.items()}
    refused = {key: refusal for key, names in ways.items() if (refusal := _refusal(names, topics[key]))}
    events = {key: _deletion(ways[key][0], topics[key]) for key in ways if key not in refused}
    answers = dict(zip(events, await context.ask_as_admin(request, list(events.values())), strict=True))
    return {"Responses": [refused.get(key) or _response(ways[key][0], topics[key], answers[key]) for key in ways]}


def _topic(context: Asking, named: _Named) -> NamedTopic | None:
    return context.topic(named.topic_id) if named.name is None else context.topic_named(named.name)


def _refusal(names: Sequence[_Named], topic: NamedTopic | None) -> Values | None:
    """Refuse a deletion without asking the engine, as Kafka's controller does; None if the engine must decide."""
    name = next((one.name for one in names if one.name is not None), None)
    topic_id = next((one.topic_id for one in names if one.topic_id != ZERO_UUID), ZERO_UUID)
    error, message = ErrorCode.INVALID_REQUEST, None
    if len(names) > 1:
        message = f"{name or topic_id} is named {len(names)} times"
    elif name is not None and topic_id != ZERO_UUID:
        message = f"{name} is named by its name and by an id"
    elif name is None and topic_id == ZERO_UUID:
        message = "neither the name nor the id of the topic is given"
    elif name is None and topic is None:
        error, message = ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of the id {topic_id}"
    elif name is not None and not has_length_of_a_topic(name):
        error, message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has such a name"
    if message is None:
        return None
    return {"Name": name, "TopicId": topic_id, "ErrorCode": error, "ErrorMessage": message}


def _deletion(named: _Named, topic: NamedTopic | None) -> DeleteTopic:
    if named.name is not None:
        return DeleteTopic(time_ms=now_ms(), topic=named.name)
    assert topic is not None
    return DeleteTopic(time_ms=now_ms(), topic=topic.name, topic_id=topic.topic_id)


def _response(named: _Named, topic: NamedTopic | None, answer: Answer) -> Values:
    name, topic_id = named if topic is None else (topic.name, topic.topic_id)
    return {"Name": name, "TopicId": topic_id} | error_of(answer)
