"""Requests of partition leaders and transaction coordinators (AlterPartition, AllocateProducerIds)."""

from collections import defaultdict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from msgspec import UNSET

from brokers.gateways.shared.apis.asking import STALE_BROKER, Asking, KnownPartition, may_be_registered
from brokers.gateways.shared.engine_client import TooLargeError
from brokers.gateways.shared.event_queue import Lane
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.canonical import RESULTS_MAX
from state.decisions import Answer
from state.events import AllocateProducerIds, AlterIsrs, Event
from state.topic_events import IsrRow, TopicIsrs

# The most rows that are asked for again in one call.
EVENTS_MAX = 10_000

# A topic id and the number of a partition.
Place = tuple[str, int]
# What became of a request for one ISR: the error, or the partition as committed.
Outcome = str | KnownPartition


class _Wanted(NamedTuple):
    """The ISR that a leader wants for one partition of a topic."""

    topic: str
    row: IsrRow


_PlacedRow = tuple[Place, _Wanted]


async def alter_partition(context: Asking, request: Request, peer: Peer) -> Values:
    """Ask the engine for the ISRs that leaders want. A committed change is in the log before it is answered.

    A leader that gets no answer asks again as long as it leads. A request that the engine has yet to answer is not
    published again.
    """
    body = request.values
    if not may_be_registered(body):
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    size = sum(len(topic["Partitions"]) for topic in body["Topics"])
    wanted = await context.offload(size, _wanted, context, request)
    outcomes = await _asked(context, body, list(wanted.items()), RESULTS_MAX)
    # One impossible value makes a whole event malformed, so what was not decided is asked for again row by row.
    left = [one for one in wanted.items() if one[0] not in outcomes]
    for first in range(0, len(left), EVENTS_MAX):
        outcomes |= await _asked(context, body, left[first : first + EVENTS_MAX], 1)
    return await context.offload(size, _response, body, outcomes)


def _wanted(context: Asking, request: Request) -> dict[Place, _Wanted]:
    """Read what is asked for the partitions of topics that exist. Only the last of several rows for one counts."""
    row = _row if request.version >= 3 else _row_without_epochs
    wanted: dict[Place, _Wanted] = {}
    for named in request.values["Topics"]:
        topic_id = named["TopicId"]
        held = context.topic(topic_id)
        if held is not None:
            for one in named["Partitions"]:
                if one["PartitionIndex"] >= 0:
                    wanted[topic_id, one["PartitionIndex"]] = _Wanted(held.name, row(one))
    return wanted


def _row(one: Values) -> IsrRow:
    isr = tuple([member["BrokerId"] for member in one["NewIsrWithEpochs"]])
    isr_epochs = tuple([member["BrokerEpoch"] for member in one["NewIsrWithEpochs"]])
    epochs = one["LeaderEpoch"], one["PartitionEpoch"]
    return IsrRow(one["PartitionIndex"], *epochs, isr, isr_epochs, one["LeaderRecoveryState"])


def _row_without_epochs(one: Values) -> IsrRow:
    """Read a row as in versions before KIP-903."""
    epochs = one["LeaderEpoch"], one["PartitionEpoch"]
    return IsrRow(one["PartitionIndex"], *epochs, tuple(one["NewIsr"]), None, one["LeaderRecoveryState"])


async def _asked(context: Asking, body: Values, rows: Sequence[_PlacedRow], rows_max: int) -> dict[Place, Outcome]:
    """Ask for ISRs in events of at most ``rows_max`` rows. Rows that were not decided have no outcome.

    The rows of an event are not decided if it is malformed or larger than the bus accepts. If it has only one, that is
    the row's outcome.
    """
    parts = [rows[first : first + rows_max] for first in range(0, len(rows), rows_max)]
    requests: dict[Hashable, Event] = {}
    for part in parts:
        # A repeated request has the same first row and as many rows. ``ask_once`` compares the whole events.
        key = ("alter_isrs", body["BrokerId"], body["BrokerEpoch"], part[0][0], len(part))
        requests[key] = await context.offload(len(part), _together, body, part)
    outcomes: dict[Place, Outcome] = {}
    try:
        answers = await context.engine.ask_once(requests, Lane.PARTITION)
    except TooLargeError:
        if rows_max == 1:
            raise
        return outcomes
    for part, answer in zip(parts, answers, strict=True):
        if rows_max == 1 or answer.results is not UNSET or answer.error in STALE_BROKER:
            outcomes |= await context.offload(len(part), _outcomes, context, part, answer)
    return outcomes


def _together(body: Values, rows: Sequence[_PlacedRow]) -> AlterIsrs:
    """Write rows of a request as one event."""
    of_topics: dict[tuple[str, str], list[IsrRow]] = defaultdict(list)
    for (topic_id, _), (topic, row) in rows:
        of_topics[topic, topic_id].append(row)
    topics = tuple(TopicIsrs(topic, tuple(some), topic_id) for (topic, topic_id), some in of_topics.items())
    return AlterIsrs(time_ms=now_ms(), broker=body["BrokerId"], broker_epoch=body["BrokerEpoch"], topics=topics)


def _outcomes(context: Asking, rows: Sequence[_PlacedRow], answer: Answer) -> dict[Place, Outcome]:
    """Return the outcome of each row: its error, or its partition as it stands now if the change is committed."""
    refused = {(one.topic, one.partition): one.error for one in answer.results or ()}
    outcomes: dict[Place, Outcome] = {}
    for place, (name, _) in rows:
        error = answer.error if answer.results is UNSET else refused.get((name, place[1]))
        topic = context.topic(place[0])
        held = None if topic is None else topic.partitions.get(place[1])
        # A topic may be deleted since.
        outcomes[place] = error or held or "UNKNOWN_TOPIC_ID"
    return outcomes


def _response(body: Values, outcomes: dict[Place, Outcome]) -> Values:
    if any(isinstance(outcome, str) and outcome in STALE_BROKER for outcome in outcomes.values()):
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH, "Topics": []}
    return {"Topics": [_topic_response(topic, outcomes) for topic in body["Topics"]]}


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
        "Isr": list(outcome.isr),
        # The leader alone reports that its partition has recovered, so what it asked for is what was committed.
        "LeaderRecoveryState": partition["LeaderRecoveryState"],
        "PartitionEpoch": outcome.partition_epoch,
    }


async def allocate_producer_ids(context: Asking, request: Request, peer: Peer, first_id_min: int = 0) -> Values:
    """Ask for the next block of producer ids. The ids below ``first_id_min`` are taken."""
    body = request.values
    if not may_be_registered(body):
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    event = AllocateProducerIds(
        time_ms=now_ms(), broker=body["BrokerId"], broker_epoch=body["BrokerEpoch"], first_id_min=first_id_min
    )
    [answer] = await context.engine.ask_once({("producer_ids", event.broker): event}, Lane.BROKER)
    if answer.error in STALE_BROKER:
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    if answer.error != "NONE":
        return {"ErrorCode": code_of(answer.error)}
    return {"ProducerIdStart": answer.producer_id_start, "ProducerIdLen": answer.producer_id_len}
