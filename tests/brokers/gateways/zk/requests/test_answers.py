"""From a broker's answer to reports about its replicas."""

import pytest

from brokers.gateways.zk.messages import CATALOGUE, LEADER_AND_ISR, STOP_REPLICA
from brokers.gateways.zk.requests.answers import StaleBrokerError, StaleControllerError, check_obeyed, reports_of
from brokers.gateways.zk.requests.building import Outgoing
from brokers.wire.schema import Values
from tests.brokers.gateways.zk.decided import ID, Told, broker, led, stop, topic


def answered(api_key: int, version: int, values: Values) -> Values:
    """Return an answer as it is read from the wire."""
    return CATALOGUE.decode_response(api_key, version, CATALOGUE.encode_response(api_key, version, 1, values)).values


def asked(api_key: int) -> Outgoing:
    told = Told()
    told.hear(broker(1), broker(2), broker(3))
    told.hear(led(partition=0), led(2, partition=1), led(partition=2), topic())
    if api_key == STOP_REPLICA:
        told.sent()
        told.hear(stop(1), stop(1, delete=False, leader_epoch=3, partition=1))
    return next(request for request in told.sent() if request.api_key == api_key)


def test_each_replica_reports_what_it_became() -> None:
    errors = [{"PartitionIndex": number, "ErrorCode": code} for number, code in enumerate((0, 0, 56))]
    values = answered(LEADER_AND_ISR, 7, {"Topics": [{"TopicId": ID, "PartitionErrors": errors}]})
    check_obeyed(values)
    reports = list(reports_of(asked(LEADER_AND_ISR), values, broker(1), 5))
    assert [(one.partition, one.outcome, one.error) for one in reports] == [
        (0, "leader", None),
        (1, "follower", None),
        (2, "error", "KAFKA_STORAGE_ERROR"),
    ]
    assert {(one.topic, one.topic_id, one.broker, one.broker_epoch, one.leader_epoch) for one in reports} == {
        ("t", ID, 1, 10, 0)
    }


def test_a_leader_epoch_that_was_heard_before_reports_nothing() -> None:
    values = answered(
        LEADER_AND_ISR,
        7,
        {"Topics": [{"TopicId": ID, "PartitionErrors": [{"PartitionIndex": 0, "ErrorCode": 11}]}]},
    )
    assert [one.partition for one in reports_of(asked(LEADER_AND_ISR), values, broker(1), 5)] == [1, 2]


def test_an_older_broker_answers_by_name() -> None:
    errors = [{"TopicName": "t", "PartitionIndex": 0, "ErrorCode": 103}]
    values = answered(LEADER_AND_ISR, 4, {"PartitionErrors": errors})
    [report, *_] = reports_of(asked(LEADER_AND_ISR), values, broker(1), 5)
    assert (report.outcome, report.error) == ("error", "INCONSISTENT_TOPIC_ID")


def test_a_removed_log_and_a_stopped_replica_are_told_apart() -> None:
    reports = list(reports_of(asked(STOP_REPLICA), answered(STOP_REPLICA, 4, {}), broker(1), 5))
    assert [(one.partition, one.outcome, one.leader_epoch) for one in reports] == [
        (0, "deleted", -2),
        (1, "stopped", 3),
    ]


@pytest.mark.parametrize(("code", "error"), [(11, StaleControllerError), (77, StaleBrokerError)])
def test_a_refusal_of_the_whole_request_says_who_is_stale(code: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_obeyed({"ErrorCode": code})
