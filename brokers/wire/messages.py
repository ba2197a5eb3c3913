"""Requests and responses as kafka-python's codec reads and writes them, and which versions are served.

The codec knows every message from Kafka's own JSON schemas; here is only the table of what a server
chooses to support, and the framing around it.
"""

import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka.protocol.api_header import RequestHeader, ResponseClassRegistry
from kafka.protocol.api_key import ApiKey
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from brokers.wire.errors import ErrorCode

FRAME_LENGTH_BYTES = 4


class WireError(Exception):
    """Bytes that are no message of the protocol: the connection they came on is of no more use."""


class Api(NamedTuple):
    """Name one API: the codec's classes, and the versions that are served.

    ``min_advertised`` differs where clients must be told of versions that are then refused.
    """

    key: int
    request: Any
    response: Any
    min_version: int
    max_version: int
    min_advertised: int

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


def api(request: Any, response: Any, versions: tuple[int, int], min_advertised: int | None = None) -> Api:
    """Make the table's entry of one API."""
    low, high = versions
    return Api(int(request.API_KEY), request, response, low, high, low if min_advertised is None else min_advertised)


API_VERSIONS = api(ApiVersionsRequest, ApiVersionsResponse, (0, 4))


class Request(NamedTuple):
    """Hold one request as it came: who asks, and the decoded ``body``; None where it cannot be served."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    api: Api | None

    def answer(self, **fields: Any) -> Any:
        """Make the response of this request's API and version."""
        assert self.api is not None
        return self.api.response(version=self.version, **fields)


def decode_request(frame: bytes, apis: Mapping[int, Api]) -> Request:
    """Read one request; an API or version that is not served comes back without a body."""
    try:
        header = RequestHeader.decode(io.BytesIO(frame), flexible=False)
        key, version = int(header.request_api_key), int(header.request_api_version)
        asked = apis.get(key)
        served = asked if asked is not None and asked.serves(version) else None
        body = served.request.decode(frame, version=version, header=True) if served else None
        return Request(key, version, int(header.correlation_id), header.client_id, body, served)
    except Exception as error:  # the codec raises whatever its parsing stumbles on
        raise WireError(f"a request that cannot be read: {type(error).__name__}: {error}") from error


def encode_response(request: Request, response: Any) -> bytes:
    """Write one response, framed, for the request it answers."""
    response.with_header(correlation_id=request.correlation_id)
    return bytes(response.encode(header=True, framed=True))


def encode_request(body: Any, correlation_id: int, client_id: str) -> bytes:
    """Write one request, framed; ``body`` knows its version."""
    body.with_header(correlation_id=correlation_id, client_id=client_id)
    return bytes(body.encode(header=True, framed=True))


def unsupported(request: Request, apis: Iterable[Api]) -> bytes | None:
    """Refuse what is not served; None when not even the shape of the refusal is known.

    An ApiVersions request of any version is answered in version 0, with the list, so that the client
    can ask again (KIP-511). Others get UNSUPPORTED_VERSION where their response has an error of its own.
    """
    error = int(ErrorCode.UNSUPPORTED_VERSION)
    if request.key == API_VERSIONS.key:
        return encode_response(request, ApiVersionsResponse(version=0, error_code=error, api_keys=api_versions(apis)))
    shape = ResponseClassRegistry._response_class_registry.get(request.key)
    if shape is None or not 0 <= request.version <= shape.max_version:
        return None
    field = shape.fields.get("error_code")
    if field is None or not field.for_version_q(request.version):
        return None
    return encode_response(request, shape[request.version](error_code=error))


def api_versions(apis: Iterable[Api]) -> list[Any]:
    """List what is served, as ApiVersions tells it."""
    entry = ApiVersionsResponse.ApiVersion
    ordered = sorted(apis, key=lambda served: served.key)
    return [entry(api_key=a.key, min_version=a.min_advertised, max_version=a.max_version) for a in ordered]


def name_of(key: int) -> str:
    """Name an API by its key, for log lines."""
    try:
        return str(ApiKey(key).name)
    except ValueError:
        return str(key)
