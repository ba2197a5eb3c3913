"""Requests that create and delete partitions, within the quota of their client (KIP-599; ``ControllerApis``).

Kafka counts a topic only after all other checks. Here the engine makes these checks. So a gateway counts each topic
before it asks the engine, and takes the count back if the engine refuses the topic. A topic of default size counts with
the number of partitions that the engine gives it.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from brokers.gateways.kraft.apis.bounds import added_partitions, created_partitions
from brokers.gateways.kraft.context import Context, NotLeadingError
from brokers.gateways.kraft.messages import Request
from brokers.gateways.kraft.mutation_quotas import Quota
from brokers.gateways.shared.slices import in_slices
from brokers.wire.errors import ErrorCode
from brokers.wire.schema import Values

# From these versions on, clients know the error, and topics beyond the quota are refused. Older clients are told to
# wait.
STRICT_SINCE = {"CreateTopics": 6, "CreatePartitions": 3, "DeleteTopics": 5}
_ANSWERED_IN = {"CreateTopics": "Topics", "CreatePartitions": "Results", "DeleteTopics": "Responses"}
# A change counts if the engine may have made it. An engine that did not answer in time may have made it.
_COUNTING = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)

Handling = Callable[[Request], Awaitable[Values]]


class _Named(NamedTuple):
    """A topic in a request: the list that has it, its entry there, its name and id, and the partitions that count."""

    listed_in: str
    entry: Values | str
    name: str | None
    topic_id: str | None
    partitions: int


async def within_quota(context: Context, quota: Quota, request: Request, things: int, handle: Handling) -> Values:
    """Give ``handle`` the part of a request that the quota allows, and refuse the rest.

    ``things`` is an estimate of how many things the request names.
    """
    named = await context.offload(things, _named, context, request)
    is_strict = request.version >= STRICT_SINCE[request.name]
    allowed: list[_Named] = []
    refused: list[_Named] = []
    async for one in in_slices(named):
        if is_strict and one.partitions and quota.wait_ms():
            refused.append(one)
            continue
        quota.take(one.partitions)
        allowed.append(one)
    answered_in = _ANSWERED_IN[request.name]
    values: Values = {answered_in: []}
    if allowed or not named:
        try:
            values = await handle(_cut(request, allowed) if refused else request)
        except NotLeadingError:
            quota.take(-sum(one.partitions for one in allowed))
            raise
        counted = {one.name: one.partitions for one in allowed if one.partitions}
        expected = ((one, counted.get(one["Name"], 0)) for one in values[answered_in])
        quota.take(sum(_changed(one, partitions) - partitions for one, partitions in expected))
    wait_ms = quota.wait_ms() if refused or not is_strict else 0
    refusals = [_refusal(one, request, wait_ms) for one in refused]
    return values | {answered_in: values[answered_in] + refusals, "ThrottleTimeMs": wait_ms}


def _changed(answered: Values, expected: int) -> int:
    """Return how many partitions of a topic count, once it is answered."""
    return int(answered.get("NumPartitions", expected)) if answered["ErrorCode"] in _COUNTING else 0


def _named(context: Context, request: Request) -> list[_Named]:
    """List the topics in a request. A topic that is named twice does not count, because it is refused."""
    body = request.values
    if request.name == "DeleteTopics":
        deleted = [_deleted(context, "TopicNames", name, name, None) for name in body["TopicNames"]]
        deleted += [_deleted(context, "Topics", one, one["Name"], one["TopicId"]) for one in body["Topics"]]
        ids = Counter(one.topic_id for one in deleted)
        return [one if ids[one.topic_id] == 1 else one._replace(partitions=0) for one in deleted]

    def count(topic: Values) -> int:
        if times[topic["Name"]] > 1:
            return 0
        if request.name == "CreatePartitions":
            return max(0, added_partitions(context, topic))
        return created_partitions(context, topic) if context.topic_named(topic["Name"]) is None else 0

    times = Counter(one["Name"] for one in body["Topics"])
    return [_Named("Topics", one, one["Name"], None, count(one)) for one in body["Topics"]]


def _deleted(context: Context, listed_in: str, entry: Values | str, name: str | None, topic_id: str | None) -> _Named:
    held = context.topic(topic_id or "") if name is None else context.topic_named(name)
    if held is None:
        return _Named(listed_in, entry, name, topic_id, 0)
    return _Named(listed_in, entry, held.name, held.topic_id, len(held.partitions))


def _cut(request: Request, allowed: list[_Named]) -> Request:
    lists = ("TopicNames", "Topics") if request.name == "DeleteTopics" else ("Topics",)
    left = {name: [one.entry for one in allowed if one.listed_in == name] for name in lists}
    return request._replace(values=request.values | left)


def _refusal(one: _Named, request: Request, wait_ms: int) -> Values:
    message = f"the quota controller_mutation_rate is exceeded: try again in {wait_ms} ms"
    refused: Values = {"Name": one.name, "ErrorCode": ErrorCode.THROTTLING_QUOTA_EXCEEDED, "ErrorMessage": message}
    return refused | ({"TopicId": one.topic_id} if request.name == "DeleteTopics" else {})
