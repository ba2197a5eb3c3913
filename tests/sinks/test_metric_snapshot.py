"""What is counted of decisions."""

import re

from prometheus_client import generate_latest

from bus.decided_runs import runs_in
from sinks.metric_snapshot import count_decisions
from tests.sinks.sample import decision, one_by_one, sample


def test_each_refused_row_of_a_request_for_many_isrs_is_counted() -> None:
    rows = [{"topic": "t", "partition": n, "error": "INELIGIBLE_REPLICA", "message": ""} for n in range(3)]
    refused = decision("answer", "REQUEST_REFUSED", request="alter_isrs", error="INELIGIBLE_REPLICA", results=rows)
    unclear = decision("answer", "REQUEST_REFUSED", request="alter_isrs", error="INVALID_REQUEST")
    done = decision("answer", "REQUEST_DONE", request="alter_isrs", error="NONE", results=[])
    assert count_decisions(runs_in(one_by_one([refused, unclear, done]))).failed_isr_updates == 4


def test_fencings_and_restarts_are_counted_for_each_broker() -> None:
    told = [
        decision("broker", "BROKER_REGISTERED", broker=1, state="fenced"),
        decision("broker", "BROKER_UNFENCED", broker=1, state="active"),
        decision("broker", "BROKER_SESSION_EXPIRED", broker=1, state="fenced"),
        decision("broker", "LOG_DIR_FAILED", broker=1, state="fenced"),
        decision("broker", "BROKER_RESTARTED", broker=1, state="fenced"),
        decision("broker", "BROKER_ASKED_FENCE", broker=2, state="fenced"),
    ]
    found = count_decisions(runs_in(one_by_one(told)))
    assert found.fencings == {1: 1, 2: 1}
    assert found.restarts == {1: 1}


def test_a_broker_without_a_fencing_has_a_counter_at_zero() -> None:
    body = generate_latest(sample().registry).decode()
    fencings = re.findall(r'isrflow_broker_fencings_total{broker="(\d)"} (\d)', body)
    assert sorted(fencings) == [("1", "0"), ("2", "0"), ("3", "1")]
