"""A request that a gateway answered with REQUEST_TIMED_OUT is never carried out later."""

from pathlib import Path

from brokers.wire.errors import ErrorCode
from tests.brokers.gateways.kraft.apis.topic_requests import create, created, new_topic, topics
from tests.support.gateway_in_process import InProcessQuorum


def test_a_request_that_timed_out_without_an_engine_is_not_carried_out_later(tmp_path: Path) -> None:
    quorum = InProcessQuorum(tmp_path, answer_timeout_ms=200)
    client = quorum.client()
    try:
        quorum.join(client, 1)
        held = created(client, "held", 1, 1)
        quorum.engine.stop()
        [late] = create(client, new_topic("late"))
        setting = {"Name": "retention.ms", "Value": "1000", "ConfigOperation": 0}
        resource = {"ResourceType": 2, "ResourceName": "held", "Configs": [setting]}
        [altered] = client.forward("IncrementalAlterConfigs", Resources=[resource])["Responses"]
        [deleted] = client.forward("DeleteTopics", Topics=[{"Name": None, "TopicId": held["TopicId"]}])["Responses"]
        grown = [{"Name": "held", "Count": 5, "Assignments": None}]
        [added] = client.forward("CreatePartitions", Topics=grown)["Results"]
        assert {one["ErrorCode"] for one in (late, altered, deleted, added)} == {ErrorCode.REQUEST_TIMED_OUT}
        quorum.decide_by()
        created(client, "asked-again", 1, 1)
        response = topics(quorum)
        assert set(response) == {"held", "asked-again"}
        assert (response["held"]["state"], response["held"]["config"]) == ("created", {})
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
        [response] = create(client, new_topic("soon"), timeoutMs=100)
        assert response["ErrorCode"] == ErrorCode.REQUEST_TIMED_OUT
    finally:
        client.close()
        quorum.stop()
