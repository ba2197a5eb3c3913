"""The request that tells where a broker's replicas are (AssignReplicasToDirs, KIP-858)."""

from collections.abc import Hashable, Mapping

from brokers.gateways.kraft.messages import Request
from brokers.gateways.shared.apis.asking import STALE_BROKER, Asking, may_be_registered
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.shared.slices import in_slices
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import Answer
from state.events import AssignReplicasToDirs

PARTITIONS_PER_EVENT_MAX = 1_000

# A directory, a topic's id and the number of a partition.
Place = tuple[str, str, int]


async def assign_replicas_to_dirs(context: Asking, request: Request, peer: Peer) -> Values:
    """Ask the engine to note where replicas are. The log has what it noted before the broker hears of it."""
    body = request.values
    if not may_be_registered(body):
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    events: dict[Hashable, AssignReplicasToDirs] = {}
    named = ((one["Id"], topic) for one in body["Directories"] for topic in one["Topics"])
    async for directory, topic in in_slices(named):
        if (held := context.topic(topic["TopicId"])) is None:
            continue
        given = (one["PartitionIndex"] for one in topic["Partitions"])
        numbers = list(dict.fromkeys(number for number in given if number >= 0))
        for first in range(0, len(numbers), PARTITIONS_PER_EVENT_MAX):
            some = tuple(numbers[first : first + PARTITIONS_PER_EVENT_MAX])
            key = ("assign", body["BrokerId"], body["BrokerEpoch"], directory, held.topic_id, some)
            events[key] = _event(body, directory, held.name, held.topic_id, some)
    answers = await context.engine.ask_once(events, Lane.BROKER)
    return await context.offload(len(events), _response, body, list(zip(events.values(), answers, strict=True)))


def _event(
    body: Values, directory: str, topic: str, topic_id: str, partitions: tuple[int, ...]
) -> AssignReplicasToDirs:
    return AssignReplicasToDirs(
        time_ms=now_ms(),
        topic=topic,
        topic_id=topic_id,
        broker=body["BrokerId"],
        broker_epoch=body["BrokerEpoch"],
        directory=directory,
        partitions=partitions,
    )


def _response(body: Values, answered: list[tuple[AssignReplicasToDirs, Answer]]) -> Values:
    errors: dict[Place, ErrorCode] = {}
    for event, answer in answered:
        if answer.error in STALE_BROKER:
            return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH, "Directories": []}
        if answer.error == "UNSUPPORTED_VERSION":
            return {"ErrorCode": ErrorCode.UNSUPPORTED_VERSION, "Directories": []}
        for result in answer.results or ():
            errors[event.directory, str(event.topic_id), result.partition] = code_of(result.error)
    return {"Directories": [{"Id": one["Id"], "Topics": _topics(one, errors)} for one in body["Directories"]]}


def _topics(directory: Values, errors: Mapping[Place, ErrorCode]) -> list[Values]:
    return [
        {
            "TopicId": topic["TopicId"],
            "Partitions": [
                {
                    "PartitionIndex": number,
                    "ErrorCode": errors.get((directory["Id"], topic["TopicId"], number), ErrorCode.UNKNOWN_TOPIC_ID),
                }
                for number in (one["PartitionIndex"] for one in topic["Partitions"])
            ],
        }
        for topic in directory["Topics"]
    ]
