"""Kafka's messages by API key and version, from folders of layouts.

A frame here is the bytes between two length prefixes, header included: exactly the content of an Envelope.
``framed(frame)`` adds the prefix of four bytes. ``values`` are dicts as in ``brokers.wire.schema``: Kafka's field
names, uuids as text. Bytes or values that do not fit their layout raise ``MessageError``. Its subclass
``UnsupportedError`` is for a request whose API or version has no layout, and has the request's header for the answer.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from importlib.resources import files
from typing import NamedTuple

from brokers.wire.errors import ErrorCode
from brokers.wire.layout import Layout, read_layout
from brokers.wire.messages import FRAME_LENGTH_BYTES
from brokers.wire.plain import Reader
from brokers.wire.schema import Encoded, Message, MessageError
from brokers.wire.schema import Values as Values

API_VERSIONS_KEY = 18


class RequestHeader(NamedTuple):
    """The header of every request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None


class Request(NamedTuple):
    """A decoded request; ``name`` is its message's, without ``Request`` at the end."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    name: str
    values: Values
    # The principal that asks; empty if it is not known.
    principal: str = ""
    # The quorum epoch of the gateway that took it in; None for other servers.
    quorum_epoch: int | None = None


class Response(NamedTuple):
    """A decoded response."""

    correlation_id: int
    values: Values


class UnsupportedError(MessageError):
    """No layout fits a request; only its ``header`` could be read."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"API {header.api_key} in version {header.version} has no layout here")
        self.header = header


def layouts_in(package: str) -> dict[str, Layout]:
    """Read every layout in the folder ``layouts`` of a package, by its message's name."""
    folder = files(package) / "layouts"
    read = [read_layout(file.read_bytes()) for file in folder.iterdir() if file.name.endswith(".json")]
    return {layout.name: layout for layout in sorted(read, key=lambda layout: layout.name)}


class Catalogue:
    """The messages of some packages' layouts, which are read when they are first needed.

    Every catalogue has headers and ApiVersions too.
    """

    def __init__(self, *packages: str) -> None:
        self._packages = ("brokers.wire", *packages)
        self._messages: dict[str, Message] = {}

    @cached_property
    def layouts(self) -> Mapping[str, Layout]:
        """Every layout by its message's name."""
        return {name: layout for package in self._packages for name, layout in layouts_in(package).items()}

    def message(self, name: str) -> Message:
        """Return the codec of the message ``name``. Raises ``MessageError`` if it has no layout."""
        found = self._messages.get(name)
        if found is None:
            if name not in self.layouts:
                raise MessageError(f"{name}: there is no layout of this name")
            found = self._messages.setdefault(name, Message(self.layouts[name]))
        return found

    @cached_property
    def requests(self) -> dict[int, Message]:
        """The requests by their API keys."""
        return self._of_kind("request")

    @cached_property
    def _responses(self) -> dict[int, Message]:
        return self._of_kind("response")

    def _of_kind(self, kind: str) -> dict[int, Message]:
        found: Iterable[Layout] = (layout for layout in self.layouts.values() if layout.kind == kind)
        return {layout.api_key: self.message(layout.name) for layout in found if layout.api_key is not None}

    def decode_header(self, frame: bytes | memoryview) -> RequestHeader:
        """Read the header of a request, whether its API is known or not."""
        values = self.message("RequestHeader").read(1, Reader(frame))
        return RequestHeader(
            values["RequestApiKey"], values["RequestApiVersion"], values["CorrelationId"], values["ClientId"]
        )

    def decode_request(self, frame: bytes | memoryview) -> Request:
        """Read a request with its header. Raises ``MessageError``, or ``UnsupportedError`` if there is no layout."""
        header = self.decode_header(frame)
        found = self.requests.get(header.api_key)
        if found is None or header.version not in found.layout.valid:
            raise UnsupportedError(header)
        reader = Reader(frame)
        self.message("RequestHeader").read(2 if found.flexible(header.version) else 1, reader)
        return Request(*header, found.name.removesuffix("Request"), found.read_last(header.version, reader))

    def encode_request(
        self, api_key: int, version: int, correlation_id: int, client_id: str | None, values: Values
    ) -> bytes:
        """Write a request with its header."""
        found = _known(self.requests, api_key)
        body = found.encode(version, values)
        header = {
            "RequestApiKey": api_key,
            "RequestApiVersion": version,
            "CorrelationId": correlation_id,
            "ClientId": client_id,
        }
        return self.message("RequestHeader").encode(2 if found.flexible(version) else 1, header) + body

    def encode_part(self, api_key: int, version: int, path: tuple[str, ...], values: Values) -> Encoded:
        """Write one struct of a request, to which the names of fields in ``path`` lead."""
        return _known(self.requests, api_key).encode_part(version, path, values)

    def encode_response(self, api_key: int, version: int, correlation_id: int, values: Values) -> bytes:
        """Write a response with its header."""
        found = _known(self._responses, api_key)
        body = found.encode(version, values)
        header = {"CorrelationId": correlation_id}
        return self.message("ResponseHeader").encode(_response_header(found, version), header) + body

    def versions_refusal(self, error: UnsupportedError) -> bytes:
        """Return the framed answer to an ApiVersions request of a future version: which ones are known (KIP-511).

        Raises ``error`` for another API, because the layout of its answer is unknown.
        """
        if error.header.api_key != API_VERSIONS_KEY:
            raise error
        low, high = self.requests[API_VERSIONS_KEY].layout.valid
        keys = [{"ApiKey": API_VERSIONS_KEY, "MinVersion": low, "MaxVersion": high}]
        values = {"ErrorCode": ErrorCode.UNSUPPORTED_VERSION, "ApiKeys": keys}
        return framed(self.encode_response(API_VERSIONS_KEY, 0, error.header.correlation_id, values))

    def decode_response(self, api_key: int, version: int, frame: bytes | memoryview) -> Response:
        """Read a response with its header."""
        found = _known(self._responses, api_key)
        reader = Reader(frame)
        header = self.message("ResponseHeader").read(_response_header(found, version), reader)
        return Response(header["CorrelationId"], found.read_last(version, reader))

    def encode_message(self, name: str, version: int, values: Values) -> bytes:
        """Write a message without a header, such as ``LeaderChangeMessage``."""
        return self.message(name).encode(version, values)

    def decode_message(self, name: str, version: int, data: bytes | memoryview) -> Values:
        """Read a message without a header."""
        return self.message(name).decode(version, data)


def framed(frame: bytes) -> bytes:
    """Return a frame with its length prefix."""
    return len(frame).to_bytes(FRAME_LENGTH_BYTES, "big") + frame


def _response_header(found: Message, version: int) -> int:
    # The response to ApiVersions has the oldest header, because the client does not know yet which one to expect
    # (KIP-511).
    return 1 if found.flexible(version) and found.layout.api_key != API_VERSIONS_KEY else 0


def _known(found: Mapping[int, Message], api_key: int) -> Message:
    if api_key not in found:
        raise MessageError(f"API {api_key} has no layout here")
    return found[api_key]
