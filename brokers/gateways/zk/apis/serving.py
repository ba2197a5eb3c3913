"""The requests that a gateway answers itself. It passes all others on."""

from collections.abc import Awaitable, Callable

from brokers.gateways.shared.apis import elections, topic_deletion
from brokers.gateways.shared.apis.asking import answered
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.gateways.zk.apis import brokers, topics
from brokers.gateways.zk.apis.context import Context
from brokers.gateways.zk.messages import (
    ALLOCATE_PRODUCER_IDS,
    ALTER_PARTITION,
    ALTER_REASSIGNMENTS,
    CATALOGUE,
    CONTROLLED_SHUTDOWN,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    LIST_REASSIGNMENTS,
    SERVED,
)
from brokers.wire.catalogue import Request, framed
from brokers.wire.errors import ErrorCode
from brokers.wire.messages import WireError
from brokers.wire.schema import Values
from brokers.wire.server import Answer, Peer

Handler = Callable[[Context, Request, Peer], Awaitable[Values]]

APIS: dict[int, Handler] = {
    CONTROLLED_SHUTDOWN: brokers.controlled_shutdown,
    CREATE_TOPICS: topics.create_topics,
    DELETE_TOPICS: topic_deletion.delete_topics,
    CREATE_PARTITIONS: topics.create_partitions,
    ELECT_LEADERS: elections.elect_leaders,
    ALTER_REASSIGNMENTS: topics.alter_partition_reassignments,
    LIST_REASSIGNMENTS: elections.list_partition_reassignments,
    ALTER_PARTITION: brokers.alter_partition,
    ALLOCATE_PRODUCER_IDS: brokers.allocate_producer_ids,
}


def answering(context: Context) -> Answer:
    """Return the function that answers requests for ``context``'s gateway."""

    async def answer(frame: bytes, peer: Peer) -> bytes:
        header = CATALOGUE.decode_header(frame)
        if header.api_key not in APIS:
            return framed(await context.proxy.ask(frame, peer))
        low, high = SERVED[header.api_key]
        if not low <= header.version <= high:
            raise WireError(f"API {header.api_key} in version {header.version} is not served")
        request = CATALOGUE.decode_request(frame)
        values = await _handled(context, request, peer)
        return framed(CATALOGUE.encode_response(request.api_key, request.version, request.correlation_id, values))

    return answer


async def _handled(context: Context, request: Request, peer: Peer) -> Values:
    if not context.leads():
        return refusal_of(request, ErrorCode.NOT_CONTROLLER)
    values = await answered(request, APIS[request.api_key](context, request, peer))
    if request.api_key == ALTER_PARTITION and not context.leads():
        # A leader acts on its ISR as soon as it hears that it is committed. But the term may have ended before the ISR
        # was in ZooKeeper, and then the next controller may not know it. The leader asks the next controller again.
        return refusal_of(request, ErrorCode.NOT_CONTROLLER)
    return values
