"""Requests of brokers: AlterPartition, AllocateProducerIds, ControlledShutdown.

Brokers know ZooKeeper's epochs, and the engine has its own. So each request is translated on its way in.
"""

import structlog

from brokers.gateways.shared.apis import partitions
from brokers.gateways.shared.event_queue import Lane
from brokers.gateways.zk.apis.context import Context
from brokers.gateways.zk.channels.requests.partition_states import RECOVERY
from brokers.gateways.zk.client.zookeeper_errors import ZookeeperError
from brokers.gateways.zk.cluster_view import ClusterView, TopicView
from brokers.gateways.zk.znodes import ZnodeError
from brokers.wire.catalogue import Request
from brokers.wire.errors import ErrorCode, code_of
from brokers.wire.schema import Values
from brokers.wire.server import Peer
from bus.clock import now_ms
from state.events import ControlledShutdown
from state.ids import NO_EPOCH

logger = structlog.get_logger()

# No broker has this epoch: a broker's epoch is the seq of the event that registered it, and the first seq is 1.
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
    asked = request._replace(values=body | {"BrokerEpoch": epoch, "Topics": topics})
    response = await partitions.alter_partition(context, asked, peer)
    return _with_repeated(context.view, body, response)


def _with_repeated(view: ClusterView, body: Values, response: Values) -> Values:
    """Answer a repeated request as done, although the engine refuses it because it was done before.

    A leader that got no answer asks again with the partition epoch that it knows. In KRaft mode the metadata log tells
    it what is committed. Here only an answer does, because the leader ignores LeaderAndIsr requests of its present
    leader epoch. After a refusal it would never change its ISR again in that epoch. The same members are taken for the
    same request, as Kafka's controller does (``LeaderAndIsr.equalsAllowStalePartitionEpoch``).
    """
    asked = {(topic["TopicId"], one["PartitionIndex"]): one for topic in body["Topics"] for one in topic["Partitions"]}
    topics = []
    for topic in response.get("Topics", ()):
        topic_id, partitions_of = topic["TopicId"], topic["Partitions"]
        if any(one.get("ErrorCode") == ErrorCode.INVALID_UPDATE_VERSION for one in partitions_of):
            held = view.topic_of_id(topic_id)
            partitions_of = [
                _repeated(held, body, asked[topic_id, one["PartitionIndex"]], one) for one in partitions_of
            ]
        topics.append(topic | {"Partitions": partitions_of})
    return response | {"Topics": topics}


def _repeated(topic: TopicView | None, body: Values, asked: Values, answer: Values) -> Values:
    """Return the committed ISR as the answer if the request asks for it, and otherwise the given answer."""
    held = None if topic is None else topic.partitions.get(asked["PartitionIndex"])
    if answer.get("ErrorCode") != ErrorCode.INVALID_UPDATE_VERSION or held is None:
        return answer
    members = {one["BrokerId"] for one in asked["NewIsrWithEpochs"]} or set(asked["NewIsr"])
    wanted = (body["BrokerId"], asked["LeaderEpoch"], members, asked["LeaderRecoveryState"])
    recovery = RECOVERY[held.leader_recovery_state]
    if wanted != (held.leader, held.leader_epoch, set(held.isr), recovery):
        return answer
    return {
        "PartitionIndex": held.partition,
        "LeaderId": held.leader,
        "LeaderEpoch": held.leader_epoch,
        "Isr": list(held.isr),
        "LeaderRecoveryState": recovery,
        "PartitionEpoch": held.partition_epoch,
    }


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
    response = await partitions.allocate_producer_ids(context, asked, peer, context.first_producer_id())
    if "ProducerIdStart" in response:
        try:
            await context.note_producer_ids(response["ProducerIdStart"] + response["ProducerIdLen"])
        except (ZookeeperError, ZnodeError) as error:
            # The broker asks the next controller, and these ids stay unused.
            logger.warning("refused", api=request.name, why=str(error))
            return {"ErrorCode": ErrorCode.NOT_CONTROLLER}
    return response


async def controlled_shutdown(context: Context, request: Request, peer: Peer) -> Values:
    """Hand over what a broker leads, and answer with what it still leads."""
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
