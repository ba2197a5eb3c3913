"""Each event is told in one sentence."""

import json

import pytest

from history.told_events import told_event
from tests.controller_logic.test_step import MINIMAL

RESOURCE = '"resource_type":"TOPIC","resource_name":"t","pattern_type":"LITERAL"'
ACL = f'{{{RESOURCE},"principal":"User:a","host":"*","operation":"READ","permission_type":"ALLOW"}}'
OF_REPLICA = '"topic":"t","partition":0,"broker":1,"broker_epoch":1,"leader_epoch":3'
GATEWAY = '"gateway":100,"incarnation":"a"'
ROW = "[0,1,5]"
REPORT = '"log_end_offsets","broker":1,"broker_epoch":1,"topics":[{"topic":"t","partitions":'
REPORTS = REPORT.replace("log_end_offsets", "replica_reports")


@pytest.mark.parametrize(
    ("event", "told"),
    [
        (f'"create_acls","acls":[{ACL}]', "An admin asked for 1 ACL."),
        (f'"create_acls","acls":[{ACL},{ACL}]', "An admin asked for 2 ACLs."),
        ('"create_partitions","topic":"t","total":1', "An admin asked for 1 partition of t."),
        ('"create_partitions","topic":"t","total":3', "An admin asked for 3 partitions of t."),
        (f"{REPORT}[{ROW}]}}]", "Broker 1 reported where 1 of its logs ends."),
        (f"{REPORT}[{ROW},{ROW}]}}]", "Broker 1 reported where 2 of its logs end."),
        ('"allocate_producer_ids","broker":1,"broker_epoch":1', "Broker 1 asked for a block of producer ids."),
        (
            '"log_end_offset","topic":"t","partition":0,"broker":1,"leader_epoch":3,"log_end_offset":42',
            "Broker 1 reported that its log of t-0 ends at 42 (leader epoch 3).",
        ),
        (
            f'"alter_isr",{OF_REPLICA},"partition_epoch":4,"isr":[1,2]',
            "Broker 1 asked for ISR 1,2 of t-0, as leader (leader epoch 3, partition epoch 4).",
        ),
        (
            f'"replica_report",{OF_REPLICA},"outcome":"deleted"',
            "Broker 1 reported its replica of t-0 as deleted in leader epoch 3.",
        ),
        (
            f'{REPORTS}[[0,3,"follower"],[1,3,"error","KAFKA_STORAGE_ERROR"],[2,3,"follower"]]}}]',
            "Broker 1 reported on 3 of its replicas: 1 error, 2 follower.",
        ),
        ('"tick","controller_epoch":-1', "The event was malformed: controller_epoch: Expected `int` >= 0."),
        (f'"gateway_started",{GATEWAY},"voters":[100,101]', "Gateway 100 started; the voters are 100,101."),
        (f'"gateway_heartbeat",{GATEWAY}', "Gateway 100 sent a heartbeat."),
        (
            f'"gateway_heartbeat",{GATEWAY},"late_ms":700,"want_shutdown":true',
            "Gateway 100 sent a heartbeat after it was held up for 700 ms, and is about to stop.",
        ),
        (
            '"sessions_extended","by_ms":700',
            "The engine was held up for 700 ms, which do not count as a broker's silence.",
        ),
    ],
)
def test_a_sentence_fits_the_number_and_the_kind_that_it_tells(event: str, told: str) -> None:
    assert told_event(f'{{"time_ms":1,"kind":{event}}}'.encode()) == told


@pytest.mark.parametrize("kind", MINIMAL)
def test_every_kind_of_event_has_a_sentence_of_its_own(kind: str) -> None:
    told = told_event(json.dumps({"kind": kind, "time_ms": 1, **MINIMAL[kind]}).encode())
    assert told.endswith(".")
    assert not told.startswith("The event was")
