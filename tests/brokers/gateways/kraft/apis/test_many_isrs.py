"""A request for the ISRs of several partitions is one event."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from brokers.wire.errors import ErrorCode
from tests.support.controller_client import ControllerClient
from tests.support.gateway_in_process import InProcessQuorum

TOPIC = "many"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[InProcessQuorum]:
    quorum = InProcessQuorum(tmp_path)
    yield quorum
    quorum.stop()


def created(client: ControllerClient) -> str:
    """Create a topic of four partitions, led by 1; return its id."""
    assignment = [{"PartitionIndex": number, "BrokerIds": [1, 2, 3]} for number in range(4)]
    requests = {"Name": TOPIC, "NumPartitions": -1, "ReplicationFactor": -1, "Assignments": assignment}
    [topic] = client.ask("CreateTopics", Topics=[requests], timeoutMs=9_000)["Topics"]
    assert topic["ErrorCode"] == ErrorCode.NONE
    return str(topic["TopicId"])


def asked(quorum: InProcessQuorum, number: int, isr: tuple[int, ...], **given: Any) -> dict[str, Any]:
    """Write what the leader asks for one partition, in its present epochs unless ``given`` has others."""
    held = quorum.partition(TOPIC, min(number, 3))
    return {
        "PartitionIndex": number,
        "LeaderEpoch": held["leader_epoch"],
        "PartitionEpoch": held["partition_epoch"],
        "NewIsrWithEpochs": [{"BrokerId": one, "BrokerEpoch": -1} for one in isr],
    } | given


def ask(client: ControllerClient, epochs: dict[int, int], topic_id: str, *rows: dict[str, Any]) -> list[dict[str, Any]]:
    topics = [{"TopicId": topic_id, "Partitions": list(rows)}]
    response = client.ask("AlterPartition", BrokerId=1, BrokerEpoch=epochs[1], Topics=topics)
    assert response["ErrorCode"] == ErrorCode.NONE
    [topic] = response["Topics"]
    return list(topic["Partitions"])


def events_after(quorum: InProcessQuorum, seq: int) -> Counter[str]:
    """Count the events about ISRs, by kind."""
    kinds = [msgspec.json.decode(entry.raw)["kind"] for entry in quorum.bus.read(seq, quorum.bus.last_seq())]
    return Counter(kind for kind in kinds if kind.startswith("alter_isr"))


def test_each_partition_is_answered_as_it_was_decided(own: InProcessQuorum) -> None:
    client = own.client()
    epochs = own.join(client, 1, 2, 3)
    topic_id = created(client)
    seq = own.bus.last_seq()
    rows = [
        asked(own, 0, (1, 2)),
        asked(own, 1, (1,)),
        asked(own, 2, (1, 2), PartitionEpoch=7),
        asked(own, 3, (2,)),
        asked(own, 9, (1,)),
    ]
    answers = ask(client, epochs, topic_id, *rows)
    client.close()
    assert [one["ErrorCode"] for one in answers] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    shown = [(one["LeaderId"], one["LeaderEpoch"], one["Isr"], one["PartitionEpoch"]) for one in answers[:2]]
    assert shown == [(1, 0, [1, 2], 1), (1, 0, [1], 1)]
    assert events_after(own, seq) == {"alter_isrs": 1}


def test_a_request_in_an_old_broker_epoch_is_refused_as_a_whole(own: InProcessQuorum) -> None:
    client = own.client()
    epochs = own.join(client, 1, 2, 3)
    topics = [{"TopicId": created(client), "Partitions": [asked(own, number, (1,)) for number in range(2)]}]
    for broker, epoch in ((1, epochs[1] - 1), (77, 1)):
        response = client.ask("AlterPartition", BrokerId=broker, BrokerEpoch=epoch, Topics=topics)
        assert (response["ErrorCode"], response["Topics"]) == (ErrorCode.STALE_BROKER_EPOCH, [])
    client.close()


def test_an_impossible_value_spoils_only_its_own_partition(own: InProcessQuorum) -> None:
    client = own.client()
    epochs = own.join(client, 1, 2, 3)
    topic_id = created(client)
    answers = ask(client, epochs, topic_id, asked(own, 0, (1, 2), LeaderEpoch=-5), asked(own, 1, (1, 2)))
    assert [one["ErrorCode"] for one in answers] == [ErrorCode.INVALID_REQUEST, ErrorCode.NONE]
    seq = own.bus.last_seq()
    ask(client, epochs, topic_id, asked(own, 2, (1, 2)), asked(own, 3, (1, 2)))
    client.close()
    assert events_after(own, seq) == {"alter_isrs": 1}
