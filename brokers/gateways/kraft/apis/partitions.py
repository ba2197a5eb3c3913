"""What partition leaders and transaction coordinators ask for (AlterPartition, AllocateProducerIds)."""

from isrflow.brokers.gateways.kraft.context import Context
from isrflow.brokers.gateways.kraft.messages import Request
from isrflow.brokers.wire.errors import ErrorCode, code_of
from isrflow.brokers.wire.schema import Values
from isrflow.brokers.wire.server import Peer
from isrflow.bus.embedded import now_ms
from isrflow.state.decisions import Answer
from isrflow.state.events import AllocateProducerIds, AlterIsr

_OF_THE_BROKER = ("STALE_BROKER_EPOCH", "BROKER_ID_NOT_REGISTERED")
_RECOVERY = (0, 1)


async def alter_partition(context: Context, request: Request, peer: Peer) -> Values:
    """Ask for ISRs as their leaders want them; what is committed is in the log before it is answered."""
    told = request.values
    events: dict[tuple[str, int], AlterIsr] = {}
    for topic in told["Topics"]:
        held = context.topic(topic["TopicId"])
        if held is not None:
            for partition in topic["Partitions"]:
                key = (topic["TopicId"], partition["PartitionIndex"])
                events[key] = _event(told, held.name, topic["TopicId"], partition, request.version)
    answers = dict(zip(events, await context.desk.ask(*events.values()), strict=True))
    for answer in answers.values():
        if answer.error in _OF_THE_BROKER:
            return {"ErrorCode": code_of(answer.error), "Topics": []}
    return {"Topics": [_told_of_topic(topic, answers) for topic in told["Topics"]]}


def _event(told: Values, name: str, topic_id: str, partition: Values, version: int) -> AlterIsr:
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
        broker=told["BrokerId"],
        broker_epoch=told["BrokerEpoch"],
        leader_epoch=partition["LeaderEpoch"],
        partition_epoch=partition["PartitionEpoch"],
        isr=isr,
        isr_epochs=epochs,
        leader_recovery_state=partition["LeaderRecoveryState"],
    )


def _told_of_topic(topic: Values, answers: dict[tuple[str, int], Answer]) -> Values:
    partitions = [
        _told_of_partition(partition, answers.get((topic["TopicId"], partition["PartitionIndex"])))
        for partition in topic["Partitions"]
    ]
    return {"TopicId": topic["TopicId"], "Partitions": partitions}


def _told_of_partition(partition: Values, answer: Answer | None) -> Values:
    told: Values = {"PartitionIndex": partition["PartitionIndex"]}
    if answer is None:
        return told | {"ErrorCode": ErrorCode.UNKNOWN_TOPIC_ID}
    if answer.error != "NONE":
        return told | {"ErrorCode": code_of(answer.error)}
    return told | {
        "LeaderId": answer.leader,
        "LeaderEpoch": answer.leader_epoch,
        "Isr": list(answer.isr or ()),
        # What is committed is what was asked for: a leader says itself that it has recovered.
        "LeaderRecoveryState": partition["LeaderRecoveryState"],
        "PartitionEpoch": answer.partition_epoch,
    }


async def allocate_producer_ids(context: Context, request: Request, peer: Peer) -> Values:
    """Ask for the next block of producer ids."""
    told = request.values
    [answer] = await context.desk.ask(
        AllocateProducerIds(time_ms=now_ms(), broker=told["BrokerId"], broker_epoch=told["BrokerEpoch"])
    )
    if answer.error != "NONE":
        return {"ErrorCode": code_of(answer.error)}
    return {"ProducerIdStart": answer.producer_id_start, "ProducerIdLen": answer.producer_id_len}
