"""The APIs that a mock broker serves, and the function that handles each."""

from collections.abc import Awaitable, Callable
from typing import Any

from brokers.mock.apis import coordination, fetch, metadata, offsets, produce
from brokers.mock.apis.context import Context
from brokers.wire.messages import API_VERSIONS, Api, Request, api_versions

_Handler = Callable[[Context, Request], Awaitable[Any | None]]


async def _api_versions(context: Context, request: Request) -> Any:
    return request.answer(error_code=0, api_keys=api_versions(APIS.values()), throttle_time_ms=0)


_SERVED: list[tuple[Api, _Handler]] = [
    (API_VERSIONS, _api_versions),
    (metadata.API, metadata.metadata),
    (produce.API, produce.produce),
    (fetch.API, fetch.fetch),
    (offsets.LIST_OFFSETS, offsets.list_offsets),
    (offsets.OFFSET_FOR_LEADER_EPOCH, offsets.offset_for_leader_epoch),
    (coordination.FIND_COORDINATOR, coordination.find_coordinator),
    (coordination.INIT_PRODUCER_ID, coordination.init_producer_id),
]
APIS: dict[int, Api] = {served.key: served for served, _ in _SERVED}
_HANDLERS: dict[int, _Handler] = {served.key: handler for served, handler in _SERVED}


def serving(context: Context) -> Callable[[Request], Awaitable[Any | None]]:
    """Return the handler of all requests for one broker."""

    def handle(request: Request) -> Awaitable[Any | None]:
        return _HANDLERS[request.key](context, request)

    return handle
