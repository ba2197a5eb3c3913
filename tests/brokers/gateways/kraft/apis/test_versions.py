"""The refusal and the response of every API can be encoded in every announced version."""

from typing import Any

import pytest

from brokers.gateways.kraft.messages import decode_request, decode_response, encode_request, encode_response
from brokers.gateways.kraft.serving import APIS
from brokers.gateways.shared.apis.refusals import refusal_of
from brokers.wire.errors import ErrorCode
from tests.support.controller_client import ControllerClient

ALL = [(key, version) for key, api in APIS.items() for version in range(api.min_version, api.max_version + 1)]
# The fields that a request needs; the layouts have defaults for all others.
LEAST: dict[int, dict[str, Any]] = {
    19: {"Topics": [{"Name": "t", "NumPartitions": 1, "ReplicationFactor": 1}]},
    30: {"Creations": [{}]},
    31: {"Filters": [{}]},
    32: {"Resources": [{"ResourceType": 2, "ResourceName": "t"}]},
    33: {"Resources": [{"ResourceType": 2, "ResourceName": "t"}]},
    37: {"Topics": [{"Name": "t", "Count": 1, "Assignments": None}]},
    43: {"TopicPartitions": [{"Topic": "t", "Partitions": [0]}]},
    44: {"Resources": [{"ResourceType": 2, "ResourceName": "t"}]},
    49: {"Entries": [{}]},
    57: {"FeatureUpdates": [{"Feature": "share.version", "MaxVersionLevel": 0}]},
    51: {"Deletions": [{"Name": "u", "Mechanism": 1}]},
    45: {"Topics": [{"Name": "t", "Partitions": [{"PartitionIndex": 0}]}]},
}


def least(key: int, version: int) -> dict[str, Any]:
    if key == 20:
        return {"TopicNames": ["t"]} if version < 6 else {"Topics": [{"Name": "t"}]}
    return LEAST.get(key, {})


@pytest.mark.parametrize(("key", "version"), ALL)
def test_every_request_can_be_refused(key: int, version: int) -> None:
    request = decode_request(encode_request(key, version, 1, "c", least(key, version)))
    refused = encode_response(key, version, 1, refusal_of(request, ErrorCode.NOT_CONTROLLER))
    assert str(int(ErrorCode.NOT_CONTROLLER)) in str(decode_response(key, version, refused).values)


@pytest.mark.parametrize("version", [0, 1])
def test_each_partition_of_a_refused_reassignment_is_told_why(version: int) -> None:
    partitions = {"a": [0, 3], "b": [1]}
    wanted = [
        {"Name": name, "Partitions": [{"PartitionIndex": number} for number in of]} for name, of in partitions.items()
    ]
    request = decode_request(encode_request(45, version, 1, "c", {"Topics": wanted}))
    refused = encode_response(45, version, 1, refusal_of(request, ErrorCode.POLICY_VIOLATION, "too many"))
    response = decode_response(45, version, refused).values
    why = {"ErrorCode": ErrorCode.POLICY_VIOLATION, "ErrorMessage": "too many"}
    assert response | why == response
    assert response["Responses"] == [
        {"Name": name, "Partitions": [{"PartitionIndex": n} | why for n in of]} for name, of in partitions.items()
    ]


@pytest.mark.usefixtures("epochs")
@pytest.mark.parametrize(("key", "version"), ALL)
def test_the_smallest_request_is_answered(client: ControllerClient, key: int, version: int) -> None:
    name = decode_request(encode_request(key, version, 1, "c", least(key, version))).name
    client.ask(name, version, **least(key, version))
    assert client.ask("ApiVersions")["ErrorCode"] == ErrorCode.NONE, "and the connection stays open"
