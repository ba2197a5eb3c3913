"""Each event is told in one sentence."""

import pytest

from history.told_events import told_event

RESOURCE = '"resource_type":"TOPIC","resource_name":"t","pattern_type":"LITERAL"'
ACL = f'{{{RESOURCE},"principal":"User:a","host":"*","operation":"READ","permission_type":"ALLOW"}}'
ROW = "[0,1,5]"
REPORT = '"log_end_offsets","broker":1,"broker_epoch":1,"topics":[{"topic":"t","partitions":'


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (f'"create_acls","acls":[{ACL}]', "An admin asked for 1 ACL."),
        (f'"create_acls","acls":[{ACL},{ACL}]', "An admin asked for 2 ACLs."),
        ('"create_partitions","topic":"t","total":1', "An admin asked for 1 partition of t."),
        ('"create_partitions","topic":"t","total":3', "An admin asked for 3 partitions of t."),
        (f"{REPORT}[{ROW}]}}]", "Broker 1 reported where 1 of its logs ends."),
        (f"{REPORT}[{ROW},{ROW}]}}]", "Broker 1 reported where 2 of its logs end."),
        ('"allocate_producer_ids","broker":1,"broker_epoch":1', "The event was of the kind allocate_producer_ids."),
    ],
)
def test_a_sentence_fits_the_number_and_the_kind_that_it_tells(event: str, told: str) -> None:
    assert told_event(f'{{"time_ms":1,"kind":{event}}}'.encode()) == told
