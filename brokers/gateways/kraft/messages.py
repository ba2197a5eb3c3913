"""Kafka's messages on a controller's listener, by API key and version, from the layouts in ``layouts/``.

    decode_request(frame) -> Request              encode_response(api_key, version, correlation_id, values) -> frame
    encode_message(name, version, values)         decode_message(name, version, data) -> values
    encode_request(api_key, version, correlation_id, client_id, values) -> frame
    decode_response(api_key, version, frame) -> Response

A frame here is what stands between two length prefixes, header included: just what an Envelope carries.
``framed(frame)`` puts the prefix of four bytes in front. ``values`` are dicts as ``brokers.wire.schema`` tells
(Kafka's field names, a uuid as text). Everything raises ``MessageError`` where bytes or values do not fit their
layout, and its subclass ``UnsupportedError`` for a request whose API or version has no layout: that holds what its
header said, for an answer. Metadata records are in ``record_frame``.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from brokers.wire.layout import Layout, read_layout
from brokers.wire.messages import FRAME_LENGTH_BYTES
from brokers.wire.plain import Reader
from brokers.wire.schema import Message, MessageError, Values

API_VERSIONS_KEY = 18


class RequestHeader(NamedTuple):
    """Hold what stands in front of every request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


class Request(NamedTuple):
    """Hold one decoded request; ``name`` is the schema's, without its ``Request``."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    name: str
    values: Values


class Response(NamedTuple):
    """Hold one decoded response."""

    correlation_id: int
    values: Values


class UnsupportedError(MessageError):
    """A request that no layout fits; ``header`` is all that could be read of it."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API {header.api_key} in version {header.version} has no layout here")
        self.header = header


@cache
def layouts() -> Mapping[str, Layout]:
    """Read every layout once, by its message's name."""
    folder = files(__package__) / "layouts"
    read = [read_layout(file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".json")]
    return {layout.name: layout for layout in sorted(read, key=lambda layout: layout.name)}


@cache
def message(name: str) -> Message:
    """Return the codec of the message with the schema's ``name``. Raises ``MessageError`` for one without a layout."""
    if name not in layouts():
        raise MessageError(f"{name}: there is no layout of this name")
    return Message(layouts()[name])


@cache
def _of_key(kind: str) -> dict[int, Message]:
    return {
        found.api_key: message(found.name)
        for found in layouts().values()
        if found.kind == kind and found.api_key is not None
    }


def decode_header(frame: bytes | memoryview) -> RequestHeader:
    """Read what every request begins with, known or not."""
    values = message("RequestHeader").read(1, Reader(frame))
    return RequestHeader(
        values["RequestApiKey"], values["RequestApiVersion"], values["CorrelationId"], values["ClientId"]
    )


def decode_request(frame: bytes | memoryview) -> Request:
    """Read a request with its header. Raises ``MessageError``, or ``UnsupportedError`` when there is no layout."""
    header = decode_header(frame)
    found = _of_key("request").get(header.api_key)
    if found is None or header.version not in found.layout.valid:
        raise UnsupportedError(header)
    reader = Reader(frame)
    message("RequestHeader").read(2 if found.flexible(header.version) else 1, reader)
    values = _last(found, header.version, reader)
    return Request(*header, found.name.removesuffix("Request"), values)


def encode_request(api_key: int, version: int, correlation_id: int, client_id: str | None, values: Values) -> bytes:
    """Write a request with its header."""
    found = _known(_of_key("request"), api_key)
    body = found.encode(version, values)
    header = {
        "RequestApiKey": api_key,
        "RequestApiVersion": version,
        "CorrelationId": correlation_id,
        "ClientId": client_id,
    }
    return message("RequestHeader").encode(2 if found.flexible(version) else 1, header) + body


def encode_response(api_key: int, version: int, correlation_id: int, values: Values) -> bytes:
    """Write a response with its header."""
    found = _known(_of_key("response"), api_key)
    body = found.encode(version, values)
    return message("ResponseHeader").encode(_response_header(found, version), {"CorrelationId": correlation_id}) + body


def decode_response(api_key: int, version: int, frame: bytes | memoryview) -> Response:
    """Read a response with its header."""
    found = _known(_of_key("response"), api_key)
    reader = Reader(frame)
    header = message("ResponseHeader").read(_response_header(found, version), reader)
    return Response(header["CorrelationId"], _last(found, version, reader))


def encode_message(name: str, version: int, values: Values) -> bytes:
    """Write a message that has no header, such as ``LeaderChangeMessage``."""
    return message(name).encode(version, values)


def decode_message(name: str, version: int, data: bytes | memoryview) -> Values:
    """Read a message that has no header."""
    return message(name).decode(version, data)


def framed(frame: bytes) -> bytes:
    """Put the length in front, as a connection carries it."""
    return len(frame).to_bytes(FRAME_LENGTH_BYTES, "big") + frame


def _response_header(found: Message, version: int) -> int:
    # Whoever asks for versions does not know yet which header it may expect (KIP-511).
    return 1 if found.flexible(version) and found.layout.api_key != API_VERSIONS_KEY else 0


def _known(found: Mapping[int, Message], api_key: int) -> Message:
    if api_key not in found:
        raise MessageError(f"API {api_key} has no layout here")
    return found[api_key]


def _last(found: Message, version: int, reader: Reader) -> Values:
    values = found.read(version, reader)
    if reader.left:
        raise MessageError(f"{found.name} v{version}: {reader.left} bytes are left over")
    return values
