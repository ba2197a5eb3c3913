"""Requests to a broker by the schemas in its own jars, for which no client is at hand."""

import json
import socket
from typing import Any

from brokers.wire.layout import read_layout
from brokers.wire.schema import Message, Values
from conf.jars import fetch
from conf.kafka_versions import KafkaVersion
from tests.support.schemas import Shape, schemas_in
from tests.support.waiting import TIMEOUT_S

_KNOWN = (
    *("name", "type", "apiKey", "validVersions", "flexibleVersions", "commonStructs", "fields", "versions"),
    *("nullableVersions", "taggedVersions", "tag", "default", "ignorable"),
)


def ask(kafka: KafkaVersion, port: int, name: str, version: int, **given: Any) -> Values:
    """Send a request in a flexible version to a broker on loopback, and return its response."""
    schemas = schemas_in(fetch(kafka.jars), kafka.number)
    request, response = (_message(schemas[f"{name}{kind}"]) for kind in ("Request", "Response"))
    key, correlation_id, client_id = schemas[f"{name}Request"]["apiKey"], 7, b"test"
    header = key.to_bytes(2, "big") + version.to_bytes(2, "big") + correlation_id.to_bytes(4, "big")
    frame = header + len(client_id).to_bytes(2, "big") + client_id + b"\0" + request.encode(version, given)
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as broker, broker.makefile("rb") as answers:
        broker.sendall(len(frame).to_bytes(4, "big") + frame)
        answer = answers.read(int.from_bytes(answers.read(4), "big"))
    # The header of the response: the correlation id, and no tagged fields.
    assert answer[:5] == correlation_id.to_bytes(4, "big") + b"\0"
    return response.decode(version, answer[5:])


def _message(schema: Shape) -> Message:
    return Message(read_layout(json.dumps(_plain(schema))))


def _plain(schema: Any) -> Any:
    """Return a schema without what says nothing about the bytes."""
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key in _KNOWN}
    return [_plain(one) for one in schema] if isinstance(schema, list) else schema
