"""Requests of brokers: AlterPartition, AllocateProducerIds, ControlledShutdown.

A broker knows epochs of ZooKeeper, and the engine knows its own. A request is translated on its way in.
"""

from brokers.engine.event_queue import Lane
from brokers.gateways.kraft.apis import partitions
from brokers.gateways.zk.apis.context import Context
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.events import ControlledShutdown
from state.ids import NO_EPOCH

# No broker has this epoch, because it is that of the first event's predecessor.
_NEVER = 0


def _engine_epoch(context: Context, broker: int, zookeeper_epoch: int) -> int:
    """Return the engine's epoch of the incarnation with this epoch in ZooKeeper; if there is none, ``_NEVER``."""
    known = context.view.brokers.get(broker)
    if zookeeper_epoch == NO_EPOCH:
        return NO_EPOCH
    return known.broker_epoch if known is not None and known.incarnation == str(zookeeper_epoch) else _NEVER


def _asking_epoch(context: Context, body: Values) -> int | None:
    """Return the engine's epoch of the broker that asks; None if its incarnation is not the known one."""
    epoch = _engine_epoch(context, body["BrokerId"], body["BrokerEpoch"])
    return epoch if epoch > _NEVER else None


async def alter_partition(context: Context, request: Request, peer: Peer) -> Values:
    """Ask the engine for the ISRs that leaders want."""
    body = request.values
    epoch = _asking_epoch(context, body)
    if epoch is None:
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    topics = [
        topic | {"Partitions": [_partition(context, one) for one in topic["Partitions"]]} for topic in body["Topics"]
    ]
    return await partitions.alter_partition(
        context, request._replace(values=body | {"BrokerEpoch": epoch, "Topics": topics}), peer
    )


def _partition(context: Context, partition: Values) -> Values:
    members = [
        member | {"BrokerEpoch": _engine_epoch(context, member["BrokerId"], member["BrokerEpoch"])}
        for member in partition["NewIsrWithEpochs"]
    ]
    return partition | {"NewIsrWithEpochs": members}


async def allocate_producer_ids(context: Context, request: Request, peer: Peer) -> Values:
    """Ask for the next block of producer ids."""
    body = request.values
    epoch = _asking_epoch(context, body)
    if epoch is None:
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    asked = request._replace(values=body | {"BrokerEpoch": epoch})
    return await partitions.allocate_producer_ids(context, asked, peer, context.first_producer_id())


async def controlled_shutdown(context: Context, request: Request, peer: Peer) -> Values:
    """Hand over what a broker leads, and say what it still leads."""
    body = request.values
    epoch = _asking_epoch(context, body)
    if epoch is None:
        return {"ErrorCode": ErrorCode.STALE_BROKER_EPOCH}
    broker = body["BrokerId"]
    event = ControlledShutdown(time_ms=now_ms(), broker=broker, broker_epoch=epoch)
    [answer] = await context.engine.ask_once({("controlled_shutdown", broker): event}, Lane.BROKER)
    if answer.error != "NONE":
        return {"ErrorCode": code_of(answer.error)}
    remaining = context.view.led_by(broker) if answer.remaining else []
    return {
        "RemainingPartitions": [{"TopicName": place.topic, "PartitionIndex": place.partition} for place in remaining]
    }
