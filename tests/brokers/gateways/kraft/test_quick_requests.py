"""The first bytes of a request show whether its answer needs the engine."""

import pytest

from brokers.gateways.kraft.messages import encode_request
from brokers.gateways.kraft.quick_requests import is_quick
from brokers.wire.rooms import START_BYTES
from tests.support.controller_client import key_of, newest

NEEDS_NO_ENGINE = {
    "DescribeConfigs": {"Resources": [{"ResourceType": 2, "ResourceName": "t", "ConfigurationKeys": None}] * 1_000},
    "ListPartitionReassignments": {"Topics": [{"Name": "t", "PartitionIndexes": list(range(2_000))}]},
}
ASKS_THE_ENGINE = {
    "DeleteTopics": {"Topics": [{"Name": "t"}] * 1_000},
    "AlterConfigs": {"Resources": [{"ResourceType": 2, "ResourceName": "t", "Configs": []}] * 1_000},
}


def start_of(name: str, values: dict[str, object], client: str, *, forwarded: bool) -> bytes:
    frame = encode_request(key_of(name), newest(name), 7, client, values)
    if forwarded:
        envelope = {"RequestData": frame, "RequestPrincipal": None, "ClientHostAddress": bytes([127, 0, 0, 1])}
        frame = encode_request(key_of("Envelope"), 0, 8, "broker", envelope)
    return frame[:START_BYTES]


@pytest.mark.parametrize("forwarded", [False, True])
def test_a_request_is_known_by_its_start(*, forwarded: bool) -> None:
    for name, values in NEEDS_NO_ENGINE.items():
        assert is_quick(start_of(name, values, "me", forwarded=forwarded)), name
    for name, values in ASKS_THE_ENGINE.items():
        assert not is_quick(start_of(name, values, "me", forwarded=forwarded)), name


def test_what_does_not_tell_counts_as_asking_the_engine() -> None:
    envelope = start_of("DescribeConfigs", NEEDS_NO_ENGINE["DescribeConfigs"], "me", forwarded=True)
    assert not any(is_quick(envelope[:length]) for length in range(18))
    assert not is_quick(encode_request(key_of("Envelope"), 0, 8, "b" * START_BYTES, {"RequestData": b""}))
