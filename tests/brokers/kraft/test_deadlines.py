"""A request that a gateway answered with REQUEST_TIMED_OUT is never carried out later."""

from pathlib import Path

from brokers.wire.errors import ErrorCode
from tests.brokers.kraft.apis.asking import asked, create, created, topics
from tests.support.gateway_in_process import InProcessQuorum


def test_a_request_that_timed_out_without_an_engine_is_not_carried_out_later(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, answer_timeout_ms=200)
    client = quorum.client()
    try:
        quorum.join(client, 1)
        held = created(client, "held", 1, 1)
        quorum.engine.stop()
        [late] = create(client, asked("late"))
        setting = {"Name": "retention.ms", "Value": "1000", "ConfigOperation": 0}
        resource = {"ResourceType": 2, "ResourceName": "held", "Configs": [setting]}
        [altered] = client.forward("IncrementalAlterConfigs", Resources=[resource])["Responses"]
        [deleted] = client.forward("DeleteTopics", Topics=[{"Name": None, "TopicId": held["TopicId"]}])["Responses"]
        grown = [{"Name": "held", "Count": 5, "Assignments": None}]
        [added] = client.forward("CreatePartitions", Topics=grown)["Results"]
        assert {one["ErrorCode"] for one in (late, altered, deleted, added)} == {ErrorCode.REQUEST_TIMED_OUT}
        quorum.decide_by()
        created(client, "asked-again", 1, 1)
        told = topics(quorum)
        assert set(told) == {"held", "asked-again"}
        assert (told["held"]["state"], told["held"]["config"]) == ("created", {})
        assert len([one for one in quorum.view()["partitions"] if one["topic"] == "held"]) == 1
    finally:
        client.close()
        quorum.stop()


def test_a_shorter_request_timeout_is_answered_sooner(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, hand_over_timeout_ms=50)
    client = quorum.client()
    try:
        quorum.engine.stop()
        client.wait_at_most(10)
        client.wait_at_most(10)
        [told] = create(client, asked("soon"), timeoutMs=100)
        assert told["ErrorCode"] == ErrorCode.REQUEST_TIMED_OUT
    finally:
        client.close()
        quorum.stop()
