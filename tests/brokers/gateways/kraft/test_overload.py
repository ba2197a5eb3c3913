"""Oversized requests are refused; the gateway continues, and its own events get through."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brokers.gateways.shared.apis.asking import RECORDS_MAX
from brokers.gateways.shared.event_queue import EventQueue, QueueFullError
from brokers.wire.errors import ErrorCode
from state.event_text import decode
from tests.brokers.gateways.kraft.apis.topic_requests import created, new_topic
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum, heartbeat
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def client(quorum: InProcessQuorum) -> Iterator[ControllerClient]:
    client = quorum.client()
    quorum.join(client, 1)
    created(client, "held", replicas=1)
    yield client
    client.close()


def settings(name: str, count: int) -> dict[str, Any]:
    configs = [{"Name": f"{name}.{number}", "Value": "1"} for number in range(count)]
    return {"Resources": [{"ResourceType": 2, "ResourceName": "held", "Configs": configs}]}


MANY = RECORDS_MAX + 1
TOO_MUCH = {
    "names": ("CreateTopics", {"Topics": [new_topic(f"t{number}") for number in range(MANY)]}),
    "partitions": ("CreateTopics", {"Topics": [new_topic("wide", RECORDS_MAX), new_topic("narrow", 1)]}),
    "settings of a new topic": ("CreateTopics", {"Topics": [new_topic("set", **{f"c{n}": "1" for n in range(MANY)})]}),
    "more partitions": ("CreatePartitions", {"Topics": [{"Name": "held", "Count": 2 + MANY, "Assignments": None}]}),
    "deletions": ("DeleteTopics", {"Topics": [{"Name": f"t{number}"} for number in range(MANY)]}),
    "settings": ("IncrementalAlterConfigs", settings("a", MANY)),
    "all settings": ("AlterConfigs", settings("b", MANY)),
    "reassignments": (
        "AlterPartitionReassignments",
        {"Topics": [{"Name": "held", "Partitions": [{"PartitionIndex": n, "Replicas": [1]} for n in range(MANY)]}]},
    ),
    "elections": ("ElectLeaders", {"TopicPartitions": [{"Topic": "held", "Partitions": list(range(MANY))}]}),
}


def errors_in(values: Any) -> set[int]:
    """Collect all error codes in a response except NONE."""
    match values:
        case dict():
            here = {code for name, code in values.items() if name == "ErrorCode"}
            return (here | {one for inner in values.values() for one in errors_in(inner)}) - {0}
        case list():
            return {one for inner in values for one in errors_in(inner)}
    return set()


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_request_for_too_much_is_refused_as_a_whole(
    quorum: InProcessQuorum, client: ControllerClient, what: str
) -> None:
    name, values = TOO_MUCH[what]
    seq = quorum.bus.last_seq()
    response = client.forward(name, **values)
    assert errors_in(response) == {ErrorCode.POLICY_VIOLATION}
    kinds = {type(decode(entry.raw)).__name__ for entry in quorum.bus.read(seq, quorum.bus.last_seq())}
    assert kinds <= {"GatewayHeartbeat", "Tick", "SessionsExtended"}, "no part of the request reached the bus"


def test_the_largest_allowed_request_is_carried_out(quorum: InProcessQuorum, client: ControllerClient) -> None:
    wide = client.forward("CreateTopics", Topics=[new_topic("as-wide", RECORDS_MAX - 1)])["Topics"]
    assert [one["ErrorCode"] for one in wide] == [ErrorCode.NONE]
    assert quorum.partition("as-wide", RECORDS_MAX - 2)["leader"] == 1


def test_a_gateway_continues_when_its_own_events_find_no_room(
    quorum: InProcessQuorum, client: ControllerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0

    def full(*given: Any) -> None:
        nonlocal tries
        tries += 1
        raise QueueFullError("no room")

    monkeypatch.setattr(EventQueue, "put", full)
    assert client.forward("DeleteTopics", Topics=[{"Name": "held"}])["Responses"][0]["ErrorCode"] == (
        ErrorCode.REQUEST_TIMED_OUT
    )
    wait_until(lambda: tries >= 4, "heartbeats to be left out")
    monkeypatch.undo()
    assert not quorum.gateways[100].has_ended
    created(client, "after-all", replicas=1)


def test_retries_behind_a_gateway_leave_one_event_on_the_bus(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path)
    client = quorum.client()
    epochs = quorum.join(client, 1, 2)
    topic_id = created(client, "asked", 6, 2)["TopicId"]
    client.close()
    quorum.gateways[100].stop()
    # Only from now on, because a slow machine may need longer for what must succeed.
    quorum.settings["answer_timeout_ms"] = 100
    quorum.start(100)
    client = quorum.client()
    try:
        led = [number for number in range(6) if quorum.partition("asked", number)["leader"] == 1]
        quorum.engine.stop()
        seq = quorum.bus.last_seq()
        partitions = [
            {"PartitionIndex": number, "LeaderEpoch": 0, "PartitionEpoch": 0, "NewIsrWithEpochs": [{"BrokerId": 1}]}
            for number in led
        ]
        response = {
            "BrokerId": 1,
            "BrokerEpoch": epochs[1],
            "Topics": [{"TopicId": topic_id, "Partitions": partitions}],
        }
        assert len(led) > 1
        one = response | {"Topics": [{"TopicId": topic_id, "Partitions": partitions[:1]}]}
        stranger = quorum.registration(3)
        for _ in range(5):
            assert client.ask("AlterPartition", **response)["ErrorCode"] == ErrorCode.REQUEST_TIMED_OUT
            assert client.ask("AlterPartition", **one)["ErrorCode"] == ErrorCode.REQUEST_TIMED_OUT
            assert client.ask("BrokerRegistration", **stranger)["ErrorCode"] == ErrorCode.REQUEST_TIMED_OUT
            block = client.ask("AllocateProducerIds", BrokerId=1, BrokerEpoch=epochs[1])
            assert block["ErrorCode"] == ErrorCode.REQUEST_TIMED_OUT
            assert client.ask("BrokerHeartbeat", **heartbeat(1, epochs[1]))["ErrorCode"] == ErrorCode.NONE
        events = [decode(entry.raw) for entry in quorum.bus.read(seq, quorum.bus.last_seq())]
        kinds = [type(event).__name__ for event in events]
        counts = [kinds.count(name) for name in ("AlterIsrs", "BrokerRegister", "AllocateProducerIds")]
        assert counts == [2, 1, 1]
    finally:
        client.close()
        for gateway in quorum.gateways.values():
            gateway.stop()
        quorum.bus.close()


def test_what_needs_no_engine_does_not_wait_for_what_waits_for_the_engine(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, answer_timeout_ms=600_000)
    asking, waiting = quorum.client(), [quorum.client() for _ in range(12)]
    try:
        quorum.join(asking, 1)
        created(asking, "held", replicas=1)
        quorum.engine.stop()
        # Each of them may take a hundred times its size once it is decoded. The first one waits for the engine, and the
        # others wait for the first one.
        for number, client in enumerate(waiting):
            configs = [{"Name": f"x.{number}.{half}", "ConfigOperation": 0, "Value": "v" * 30_000} for half in (1, 2)]
            resource = {"ResourceType": 4, "ResourceName": "1", "Configs": configs}
            client.send("IncrementalAlterConfigs", Resources=[resource])
        wait_until(lambda: quorum.gateways[100].gateway.measures().events > 0, "the first of them to wait")
        names = [f"no.such.setting.{number}" for number in range(70)]
        resource = {"ResourceType": 2, "ResourceName": "held", "ConfigurationKeys": names}
        [result] = asking.ask("DescribeConfigs", Resources=[resource])["Results"]
        assert (result["ErrorCode"], result["Configs"]) == (ErrorCode.NONE, [])
        partitions = [{"Name": "held", "PartitionIndexes": list(range(400))}]
        assert asking.forward("ListPartitionReassignments", Topics=partitions)["ErrorCode"] == ErrorCode.NONE
    finally:
        for client in (asking, *waiting):
            client.close()
        for gateway in quorum.gateways.values():
            gateway.stop()
        quorum.bus.close()
