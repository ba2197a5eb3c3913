"""The APIs that a mock broker serves, and the function that handles each."""

from collections.abc import Awaitable, Callable

from brokers.mock.apis import coordination, fetch, metadata, offsets, produce
from brokers.mock.apis.context import Context
from brokers.mock.messages import (
    CATALOGUE,
    FETCH,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FOR_LEADER_EPOCH,
    PRODUCE,
)
from brokers.wire.catalogue import API_VERSIONS_KEY, Request, UnsupportedError, Values, framed
from brokers.wire.server import Answer, Peer

Handler = Callable[[Context, Request], Awaitable[Values | None]]
# Versions that are advertised and then refused, as Kafka does, because librdkafka needs to see them (KAFKA-18659).
_ADVERTISED_FROM = {PRODUCE: 0}


async def _api_versions(context: Context, request: Request) -> Values:
    served = {key: CATALOGUE.requests[key].layout.valid for key in sorted(APIS)}
    keys = [
        {"ApiKey": key, "MinVersion": _ADVERTISED_FROM.get(key, valid.low), "MaxVersion": valid.high}
        for key, valid in served.items()
    ]
    return {"ApiKeys": keys}


APIS: dict[int, Handler] = {
    PRODUCE: produce.produce,
    FETCH: fetch.fetch,
    LIST_OFFSETS: offsets.list_offsets,
    METADATA: metadata.metadata,
    FIND_COORDINATOR: coordination.find_coordinator,
    API_VERSIONS_KEY: _api_versions,
    INIT_PRODUCER_ID: coordination.init_producer_id,
    OFFSET_FOR_LEADER_EPOCH: offsets.offset_for_leader_epoch,
}


def answering(context: Context) -> Answer:
    """Return the function that answers requests to one broker."""

    async def answer(frame: bytes, peer: Peer) -> bytes | None:
        try:
            request = CATALOGUE.decode_request(frame)
        except UnsupportedError as error:
            return CATALOGUE.versions_refusal(error)
        values = await APIS[request.api_key](context, request)
        if values is None:
            return None
        return framed(CATALOGUE.encode_response(request.api_key, request.version, request.correlation_id, values))

    return answer
