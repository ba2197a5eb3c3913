"""FindCoordinator and InitProducerId, as far as clients with assigned partitions need them."""

from brokers.mock.apis.context import Context
from brokers.mock.log.producers import new_producer_id
from brokers.wire.catalogue import Request, Values
from brokers.wire.errors import ErrorCode

BATCHED_FROM = 4


async def find_coordinator(context: Context, request: Request) -> Values:
    """Answer that there is no coordinator: mock brokers keep neither groups nor transactions."""
    none = {
        "NodeId": -1,
        "Host": "",
        "Port": -1,
        "ErrorCode": ErrorCode.COORDINATOR_NOT_AVAILABLE,
        "ErrorMessage": "mock brokers have none",
    }
    if request.version < BATCHED_FROM:
        return none
    return {"Coordinators": [{"Key": key, **none} for key in request.values["CoordinatorKeys"]]}


async def init_producer_id(context: Context, request: Request) -> Values:
    """Hand out a producer id for idempotence, and refuse transactions.

    A producer that sends its id, to continue after an error, gets a new id with epoch 0. So records in flight under the
    old id cannot be taken for records under the new one (KIP-360 also allows the old id with a higher epoch).
    """
    if request.values["TransactionalId"] is not None:
        return {"ErrorCode": ErrorCode.INVALID_REQUEST, "ProducerId": -1, "ProducerEpoch": -1}
    return {"ProducerId": new_producer_id(), "ProducerEpoch": 0}
