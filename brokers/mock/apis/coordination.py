"""FindCoordinator and InitProducerId: as much of them as clients with assigned partitions need."""

from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from kafka.protocol.producer import InitProducerIdRequest, InitProducerIdResponse

from brokers.mock.apis.context import Context
from brokers.mock.log.producers import new_producer_id
from brokers.wire.errors import ErrorCode
from brokers.wire.messages import Request, api

FIND_COORDINATOR = api(FindCoordinatorRequest, FindCoordinatorResponse, (0, 4))
INIT_PRODUCER_ID = api(InitProducerIdRequest, InitProducerIdResponse, (0, 4))
BATCHED_FROM = 4


async def find_coordinator(context: Context, request: Request) -> Any:
    """Answer that there is no coordinator: mock brokers keep neither groups nor transactions."""
    error = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    nobody = {"node_id": -1, "host": "", "port": -1, "error_code": error, "error_message": "mock brokers have none"}
    if request.version < BATCHED_FROM:
        return request.answer(throttle_time_ms=0, **nobody)
    coordinator = FindCoordinatorResponse.Coordinator
    coordinators = [coordinator(version=request.version, key=key, **nobody) for key in request.body.coordinator_keys]
    return request.answer(throttle_time_ms=0, coordinators=coordinators)


async def init_producer_id(context: Context, request: Request) -> Any:
    """Hand out a producer id for idempotence, and refuse transactions.

    A producer that sends its id, to continue after an error, gets a new id with epoch 0. So records in flight under the
    old id cannot be taken for records under the new one (KIP-360 also allows the old id with a higher epoch).
    """
    if request.body.transactional_id is not None:
        return request.answer(error_code=int(ErrorCode.INVALID_REQUEST), producer_id=-1, producer_epoch=-1)
    return request.answer(error_code=0, producer_id=new_producer_id(), producer_epoch=0)
