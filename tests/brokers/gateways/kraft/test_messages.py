"""Frames of requests, responses and metadata records: their headers, and the errors for unknown ones."""

import pytest

from brokers.gateways.kraft.messages import (
    MessageError,
    UnsupportedError,
    decode_message,
    decode_request,
    decode_response,
    encode_message,
    encode_request,
    encode_response,
    framed,
    layouts,
)
from brokers.wire.metadata.record_frame import decode_record, encode_record

HEARTBEAT = 63


def test_a_request_of_a_flexible_version_has_header_2() -> None:
    values = {"BrokerId": 1, "BrokerEpoch": 5, "WantFence": True}
    frame = encode_request(HEARTBEAT, 0, 7, "b1", values)
    assert frame.hex() == "003f0000000000070002623100" + "0000000100000000000000050000000000000000010000"
    request = decode_request(frame)
    assert request[:5] == (HEARTBEAT, 0, 7, "b1", "BrokerHeartbeat")
    assert request.values["WantFence"] is True
    assert request.values["OfflineLogDirs"] == []


def test_a_request_of_an_old_version_has_header_1() -> None:
    frame = encode_request(20, 1, -1, None, {"TopicNames": ["t"], "TimeoutMs": 9})
    assert frame.hex() == "00140001ffffffffffff" + "0000000100017400000009"
    assert decode_request(frame).values["TopicNames"] == ["t"]


def test_response_headers_have_tags_except_for_api_versions() -> None:
    assert encode_response(HEARTBEAT, 0, 3, {}).hex().startswith("000000030000000000")
    assert encode_response(18, 4, 3, {}).hex().startswith("00000003000001")
    assert encode_response(20, 1, 3, {}).hex().startswith("0000000300000000")


@pytest.mark.parametrize("key", [1, 18, 19, 52, 56, 58, 62, 63, 67])
def test_responses_are_read_back_in_every_version(key: int) -> None:
    [valid] = [one.valid for one in layouts().values() if (one.kind, one.api_key) == ("request", key)]
    for version in range(valid.low, valid.high + 1):
        frame = encode_response(key, version, 11, {})
        correlation_id, values = decode_response(key, version, frame)
        assert correlation_id == 11
        assert encode_response(key, version, 11, values) == frame
        with pytest.raises(MessageError, match="1 bytes are left over"):
            decode_response(key, version, frame + b"\0")


@pytest.mark.parametrize(("key", "version"), [(18, 5), (999, 0), (1, 11)])
def test_a_request_without_a_layout_is_named(key: int, version: int) -> None:
    with pytest.raises(UnsupportedError, match=f"API {key} in version {version}") as caught:
        decode_request(b"".join(n.to_bytes(2, "big") for n in (key, version)) + b"\0\0\0\x09\0\1cgarbage")
    assert caught.value.header == (key, version, 9, "c")


def test_a_request_that_is_cut_off_names_its_field() -> None:
    frame = encode_request(HEARTBEAT, 1, 7, "b1", {"BrokerId": 1, "BrokerEpoch": 5})
    with pytest.raises(MessageError, match="BrokerHeartbeatRequest v1: BrokerEpoch: 8 bytes are needed and 2 are left"):
        decode_request(frame[:19])
    with pytest.raises(MessageError, match="RequestHeader v1: CorrelationId: 4 bytes are needed and 1 are left"):
        decode_request(frame[:5])
    with pytest.raises(MessageError, match="BrokerHeartbeatRequest v1: 1 bytes are left over"):
        decode_request(frame + b"\0")


def test_every_request_has_a_response() -> None:
    by_kind = {
        kind: {(layout.api_key, layout.valid) for layout in layouts().values() if layout.kind == kind}
        for kind in ("request", "response")
    }
    assert by_kind["request"] == by_kind["response"] != set()


def test_a_record_is_framed_as_in_the_metadata_log() -> None:
    data = encode_record("FeatureLevelRecord", 0, {"Name": "metadata.version", "FeatureLevel": 27})
    assert data.hex() == "010c0011" + b"metadata.version".hex() + "001b00"
    assert decode_record(data) == ("FeatureLevelRecord", 0, {"Name": "metadata.version", "FeatureLevel": 27})


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ("", "the frame of a metadata record: the bytes end within a varint"),
        ("020c00", "a frame of version 2, not 1"),
        ("01ff0100", "metadata record 255 has no layout here"),
        ("010c07", "FeatureLevelRecord: version 7 is not among 0 to 0"),
        ("010c000161", "FeatureLevelRecord v0: FeatureLevel: 2 bytes are needed and 1 are left"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(data: str, said: str) -> None:
    with pytest.raises(MessageError, match=said):
        decode_record(bytes.fromhex(data))


def test_only_metadata_records_are_framed_as_such() -> None:
    with pytest.raises(MessageError, match="LeaderChangeMessage is not a metadata record"):
        encode_record("LeaderChangeMessage", 0, {})
    with pytest.raises(MessageError, match="NoSuchRecord: there is no layout"):
        encode_record("NoSuchRecord", 0, {})


def test_a_message_without_header_is_just_its_fields() -> None:
    voters = [{"VoterId": 9, "VoterDirectoryId": "AAAAAAAAAAAAAAAAAAAAAA"}]
    data = encode_message("LeaderChangeMessage", 0, {"LeaderId": 9, "Voters": voters, "GrantingVoters": voters})
    assert data.hex() == "00000000000902000000090002000000090000"
    assert decode_message("LeaderChangeMessage", 0, data)["Voters"] == voters


def test_a_connection_carries_the_length_first() -> None:
    assert framed(b"abc") == b"\0\0\0\3abc"
