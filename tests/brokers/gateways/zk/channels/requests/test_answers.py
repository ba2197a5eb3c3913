"""From a broker's answer to reports about its replicas."""

import pytest

from brokers.gateways.zk.channels.requests import answers
from brokers.gateways.zk.channels.requests.answers import (
    Report,
    StaleBrokerError,
    StaleControllerError,
    check_obeyed,
    events_of,
    reports_of,
)
from brokers.gateways.zk.channels.requests.building import Outgoing
from brokers.gateways.zk.cluster_view import Place
from brokers.gateways.zk.messages import CATALOGUE, LEADER_AND_ISR, STOP_REPLICA
from brokers.wire.schema import Values
from state.topic_events import ReportRow, TopicReports
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
    reports = list(reports_of(asked(LEADER_AND_ISR), values))
    rows = (
        ReportRow(0, 0, "leader"),
        ReportRow(1, 0, "follower"),
        ReportRow(2, 0, "error", "KAFKA_STORAGE_ERROR"),
    )
    assert [(one.place, one.row) for one in reports] == [(Place("t", row.partition), row) for row in rows]
    [event] = events_of(reports, broker(1), 5)
    assert (event.time_ms, event.broker, event.broker_epoch) == (5, 1, 10)
    assert event.topics == (TopicReports("t", rows, ID),)


def test_an_event_has_a_part_of_many_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "REPORTS_PER_EVENT", 2)
    rows = [(name, ReportRow(number, 0, "leader")) for name in ("t", "u") for number in range(2)]
    reports = [Report(Place(name, row.partition), ID, row) for name, row in [rows[0], rows[2], rows[3], rows[1]]]
    events = list(events_of(reports, broker(1), 5))
    told = [[(topic.topic, row) for topic in event.topics for row in topic.partitions] for event in events]
    assert told == [[rows[0], rows[2]], [rows[3], rows[1]]]


def test_a_leader_epoch_that_was_heard_before_reports_nothing() -> None:
    values = answered(
        LEADER_AND_ISR,
        7,
        {"Topics": [{"TopicId": ID, "PartitionErrors": [{"PartitionIndex": 0, "ErrorCode": 11}]}]},
    )
    assert [one.place.partition for one in reports_of(asked(LEADER_AND_ISR), values)] == [1, 2]


def test_an_older_broker_answers_by_name() -> None:
    errors = [{"TopicName": "t", "PartitionIndex": 0, "ErrorCode": 103}]
    values = answered(LEADER_AND_ISR, 4, {"PartitionErrors": errors})
    [report, *_] = reports_of(asked(LEADER_AND_ISR), values)
    assert (report.row.outcome, report.row.error) == ("error", "INCONSISTENT_TOPIC_ID")


def test_a_removed_log_and_a_stopped_replica_are_told_apart() -> None:
    reports = reports_of(asked(STOP_REPLICA), answered(STOP_REPLICA, 4, {}))
    assert [one.row for one in reports] == [ReportRow(0, -2, "deleted"), ReportRow(1, 3, "stopped")]


@pytest.mark.parametrize(("code", "error"), [(11, StaleControllerError), (77, StaleBrokerError)])
def test_a_refusal_of_the_whole_request_says_who_is_stale(code: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_obeyed({"ErrorCode": code})
