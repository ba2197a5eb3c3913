"""Requests and responses as kafka-python's codec reads and writes them, and which versions a server supports.

The codec knows every message from Kafka's own JSON schemas. This module has the table of supported versions and the
framing.
"""

import io
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka.protocol.api_header import RequestHeader, ResponseClassRegistry
from kafka.protocol.api_key import ApiKey
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from brokers.wire.element_count import check_elements
from brokers.wire.errors import ErrorCode

FRAME_LENGTH_BYTES = 4
# A request up to this size cannot have many elements.
_UNCOUNTED_BYTES_MAX = 64 * 1024


class WireError(Exception):
    """Some bytes are not a message of the protocol. The connection on which they came must be closed."""


class Api(NamedTuple):
    """One API: the codec's classes and the versions that are supported."""

    key: int
    request: Any
    response: Any
    min_version: int
    max_version: int
    # Lower than ``min_version`` if clients need to see versions that are refused when used.
    min_advertised: int

    def serves(self, version: int) -> bool:
        return self.min_version <= version <= self.max_version


def api(request: Any, response: Any, versions: tuple[int, int], min_advertised: int | None = None) -> Api:
    """Return the table entry of one API."""
    low, high = versions
    return Api(int(request.API_KEY), request, response, low, high, low if min_advertised is None else min_advertised)


API_VERSIONS = api(ApiVersionsRequest, ApiVersionsResponse, (0, 4))


class Request(NamedTuple):
    """One request with its header. ``body`` and ``api`` are None if the API or version is not supported."""

    key: int
    version: int
    correlation_id: int
    client_id: str | None
    body: Any
    api: Api | None

    def answer(self, **fields: Any) -> Any:
        """Build the response of this request's API and version."""
        assert self.api is not None
        return self.api.response(version=self.version, **fields)


def decode_request(frame: bytes, apis: Mapping[int, Api]) -> Request:
    """Read a request. One whose API or version is not supported is returned without a body.

    Raises ``WireError``, also for a request with so many elements that everybody else would wait for it.
    """
    try:
        header = RequestHeader.decode(io.BytesIO(frame), flexible=False)
        key, version = int(header.request_api_key), int(header.request_api_version)
        known = apis.get(key)
        served = known if known is not None and known.serves(version) else None
        if served and len(frame) > _UNCOUNTED_BYTES_MAX:
            check_elements(frame, served.request.__name__, version)
        body = served.request.decode(frame, version=version, header=True) if served else None
        return Request(key, version, int(header.correlation_id), header.client_id, body, served)
    except Exception as error:  # on bad bytes the codec may raise anything
        raise WireError(f"a request that cannot be read: {type(error).__name__}: {error}") from error


def encode_response(request: Request, response: Any) -> bytes:
    """Write the framed response to a request."""
    response.with_header(correlation_id=request.correlation_id)
    return bytes(response.encode(header=True, framed=True))


def encode_request(body: Any, correlation_id: int, client_id: str) -> bytes:
    """Write a framed request in the version that ``body`` has."""
    body.with_header(correlation_id=correlation_id, client_id=client_id)
    return bytes(body.encode(header=True, framed=True))


def unsupported(request: Request, apis: Iterable[Api]) -> bytes | None:
    """Refuse a request that is not supported; None if even the shape of a refusal is unknown.

    An ApiVersions request of any version is answered in version 0, with the list, so that the client can ask again
    (KIP-511). Other requests get UNSUPPORTED_VERSION if their response has a top-level error.
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
    """List the supported APIs as ApiVersions returns them."""
    entry = ApiVersionsResponse.ApiVersion
    ordered = sorted(apis, key=lambda served: served.key)
    return [entry(api_key=a.key, min_version=a.min_advertised, max_version=a.max_version) for a in ordered]


def name_of(key: int) -> str:
    """Return an API's name for log lines."""
    try:
        return str(ApiKey(key).name)
    except ValueError:
        return str(key)
