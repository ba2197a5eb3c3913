"""Requests of partition leaders and transaction coordinators (AlterPartition, AllocateProducerIds)."""

from collections.abc import Hashable
from itertools import islice

from brokers.engine.event_queue import Lane
from brokers.engine.slices import in_slices
from brokers.gateways.kraft.asking import STALE_BROKER, Asking
from brokers.gateways.kraft.messages import Request
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.decisions import Answer
from state.events import AllocateProducerIds, AlterIsr, Event

# A broker may ask for all partitions that it leads in one request, which can be more events than the queue takes at
# once.
PARTITIONS_PER_REQUEST_MAX = 10_000

# A topic id and the number of a partition.
Place = tuple[str, int]


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
    keys: dict[Hashable, Event] = {}
    async for place, one in in_slices(events.items()):
        # The key has what the fences compare: the sender, and its version of the partition.
        keys["alter_isr", *place, one.broker, one.broker_epoch, one.leader_epoch, one.partition_epoch] = one
    answers: list[Answer] = []
    for first in range(0, len(keys), PARTITIONS_PER_REQUEST_MAX):
        part = dict(islice(keys.items(), first, first + PARTITIONS_PER_REQUEST_MAX))
        answers += await context.engine.ask_once(part, Lane.PARTITION)
    return await context.offload(len(events), _response, body, dict(zip(events, answers, strict=True)))


def _response(body: Values, answers: dict[Place, Answer]) -> Values:
    for answer in answers.values():
        if answer.error in STALE_BROKER:
            return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH, "Topics": []}
    return {"Topics": [_topic_response(topic, answers) for topic in body["Topics"]]}


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


def _topic_response(topic: Values, answers: dict[Place, Answer]) -> Values:
    partitions = [
        _partition_response(partition, answers.get((topic["TopicId"], partition["PartitionIndex"])))
        for partition in topic["Partitions"]
    ]
    return {"TopicId": topic["TopicId"], "Partitions": partitions}


def _partition_response(partition: Values, answer: Answer | None) -> Values:
    response: Values = {"PartitionIndex": partition["PartitionIndex"]}
    if partition["PartitionIndex"] < 0:
        return response | {"ErrorCode": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    if answer is None:
        return response | {"ErrorCode": ErrorCode.UNKNOWN_TOPIC_ID}
    if answer.error != "NONE":
        return response | {"ErrorCode": code_of(answer.error)}
    return response | {
        "LeaderId": answer.leader,
        "LeaderEpoch": answer.leader_epoch,
        "Isr": list(answer.isr or ()),
        # The committed state is the requested one, because only the leader says that it has recovered.
        "LeaderRecoveryState": partition["LeaderRecoveryState"],
        "PartitionEpoch": answer.partition_epoch,
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
