"""Requests of partition leaders and transaction coordinators (AlterPartition, AllocateProducerIds)."""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from itertools import islice

from msgspec import UNSET

from brokers.engine.engine_client import TooLargeError
from brokers.engine.event_queue import Lane
from brokers.engine.slices import in_slices
from brokers.gateways.kraft.asking import STALE_BROKER, Asking, KnownPartition
from brokers.gateways.kraft.messages import Request
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.canonical import RESULTS_MAX
from state.decisions import Answer
from state.events import AllocateProducerIds, AlterIsr, AlterIsrs, Event
from state.isr_events import IsrRow, TopicIsrs

# A broker may ask for all partitions that it leads in one request, which can be more events than the queue takes at
# once.
PARTITIONS_PER_REQUEST_MAX = 10_000

# A topic id and the number of a partition.
Place = tuple[str, int]
_MANY = "alter_isrs"
# What became of a request for one ISR: the error, or the partition as committed.
Outcome = str | Answer | KnownPartition


async def alter_partition(context: Asking, request: Request, peer: Peer) -> Values:
    """Ask the engine for the ISRs that leaders want. A committed change is in the log before it is answered.

    A leader that gets no answer asks again as long as it leads. A request that the engine has yet to answer is not
    published again.
    """
    body = request.values
    events: dict[Place, AlterIsr] = {}
    named = ((topic["TopicId"], one) for topic in body["Topics"] for one in topic["Partitions"])
    async for topic_id, partition in in_slices(named):
        held = context.topic(topic_id)
        if held is not None and partition["PartitionIndex"] >= 0:
            event = _event(body, held.name, topic_id, partition, request.version)
            events[topic_id, event.partition] = event
    outcomes = await _at_once(context, events) if len(events) > 1 and context.engine.knows(_MANY) else {}
    left = {place: event for place, event in events.items() if place not in outcomes}
    keys: dict[Hashable, Event] = {}
    async for place, one in in_slices(left.items()):
        # The key has what the fences compare: the sender, and its version of the partition.
        keys["alter_isr", *place, one.broker, one.broker_epoch, one.leader_epoch, one.partition_epoch] = one
    answers: list[Answer] = []
    for first in range(0, len(keys), PARTITIONS_PER_REQUEST_MAX):
        part = dict(islice(keys.items(), first, first + PARTITIONS_PER_REQUEST_MAX))
        answers += await context.engine.ask_once(part, Lane.PARTITION)
    outcomes |= {
        place: answer if answer.error == "NONE" else answer.error for place, answer in zip(left, answers, strict=True)
    }
    return await context.offload(len(events), _response, body, outcomes)


async def _at_once(context: Asking, events: Mapping[Place, AlterIsr]) -> dict[Place, Outcome]:
    """Ask for all ISRs in one event, or in as many as they need. What the engine cannot take so has no outcome.

    That is all, if the engine is older than this gateway. Otherwise it is what one impossible value made malformed.
    """
    rows = list(events.items())
    parts = [rows[first : first + RESULTS_MAX] for first in range(0, len(rows), RESULTS_MAX)]
    requests: dict[Hashable, Event] = {}
    for number, part in enumerate(parts):
        _, first = part[0]
        key = (_MANY, first.broker, first.broker_epoch, number)
        requests[key] = await context.offload(len(part), _together, part)
    outcomes: dict[Place, Outcome] = {}
    try:
        answers = await context.engine.ask_once(requests, Lane.PARTITION)
    except TooLargeError:
        return outcomes
    for part, answer in zip(parts, answers, strict=True):
        if answer.results is not UNSET or answer.error in STALE_BROKER:
            outcomes |= await context.offload(len(part), _outcomes, context, part, answer)
        elif _MANY in answer.message:
            # The complaint names the kind.
            context.engine.note_unknown(_MANY)
    return outcomes


def _together(rows: Sequence[tuple[Place, AlterIsr]]) -> AlterIsrs:
    """Write requests of one leader as one event."""
    of_topics: dict[str, list[AlterIsr]] = defaultdict(list)
    for (topic_id, _), one in rows:
        of_topics[topic_id].append(one)
    first = rows[0][1]
    topics = [TopicIsrs(some[0].topic, tuple(map(_row, some)), topic_id) for topic_id, some in of_topics.items()]
    return AlterIsrs(time_ms=now_ms(), broker=first.broker, broker_epoch=first.broker_epoch, topics=tuple(topics))


def _row(one: AlterIsr) -> IsrRow:
    epochs = (one.leader_epoch, one.partition_epoch)
    return IsrRow(one.partition, *epochs, one.isr, one.isr_epochs, one.leader_recovery_state)


def _outcomes(context: Asking, rows: Sequence[tuple[Place, AlterIsr]], answer: Answer) -> dict[Place, Outcome]:
    """Say what became of each row. Those that are not refused are committed, and are shown as they stand now."""
    refused = {(one.topic, one.partition): one.error for one in answer.results or ()}
    outcomes: dict[Place, Outcome] = {}
    for place, one in rows:
        error = answer.error if answer.results is UNSET else refused.get((one.topic, one.partition))
        topic = context.topic(place[0])
        held = None if topic is None else topic.partitions.get(one.partition)
        # A topic may be deleted since.
        outcomes[place] = error or held or "UNKNOWN_TOPIC_ID"
    return outcomes


def _response(body: Values, outcomes: dict[Place, Outcome]) -> Values:
    if any(isinstance(outcome, str) and outcome in STALE_BROKER for outcome in outcomes.values()):
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH, "Topics": []}
    return {"Topics": [_topic_response(topic, outcomes) for topic in body["Topics"]]}


def _event(body: Values, name: str, topic_id: str, partition: Values, version: int) -> AlterIsr:
    if version >= 3:
        isr = tuple(member["BrokerId"] for member in partition["NewIsrWithEpochs"])
        epochs = tuple(member["BrokerEpoch"] for member in partition["NewIsrWithEpochs"])
    else:
        isr, epochs = tuple(partition["NewIsr"]), None
    return AlterIsr(
        time_ms=now_ms(),
        topic=name,
        topic_id=topic_id,
        partition=partition["PartitionIndex"],
        broker=body["BrokerId"],
        broker_epoch=body["BrokerEpoch"],
        leader_epoch=partition["LeaderEpoch"],
        partition_epoch=partition["PartitionEpoch"],
        isr=isr,
        isr_epochs=epochs,
        leader_recovery_state=partition["LeaderRecoveryState"],
    )


def _topic_response(topic: Values, outcomes: dict[Place, Outcome]) -> Values:
    partitions = [
        _partition_response(partition, outcomes.get((topic["TopicId"], partition["PartitionIndex"])))
        for partition in topic["Partitions"]
    ]
    return {"TopicId": topic["TopicId"], "Partitions": partitions}


def _partition_response(partition: Values, outcome: Outcome | None) -> Values:
    response: Values = {"PartitionIndex": partition["PartitionIndex"]}
    if partition["PartitionIndex"] < 0:
        return response | {"ErrorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    if outcome is None:
        return response | {"ErrorCode": ErrorCode.UNKNOWN_TOPIC_ID}
    if isinstance(outcome, str):
        return response | {"ErrorCode": code_of(outcome)}
    return response | {
        "LeaderId": outcome.leader,
        "LeaderEpoch": outcome.leader_epoch,
        "Isr": list(outcome.isr or ()),
        # The committed state is the requested one, because only the leader says that it has recovered.
        "LeaderRecoveryState": partition["LeaderRecoveryState"],
        "PartitionEpoch": outcome.partition_epoch,
    }


async def allocate_producer_ids(context: Asking, request: Request, peer: Peer, first_id_min: int = 0) -> Values:
    """Ask for the next block of producer ids. Those below ``first_id_min`` are taken."""
    body = request.values
    event = AllocateProducerIds(
        time_ms=now_ms(), broker=body["BrokerId"], broker_epoch=body["BrokerEpoch"], first_id_min=first_id_min
    )
    [answer] = await context.engine.ask_once({("producer_ids", event.broker): event}, Lane.BROKER)
    if answer.error in STALE_BROKER:
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    if answer.error != "NONE":
        return {"ErrorCode": code_of(answer.error)}
    return {"ProducerIdStart": answer.producer_id_start, "ProducerIdLen": answer.producer_id_len}
