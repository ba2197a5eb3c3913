"""What is counted of decisions."""

from bus.decided_runs import runs_in
from sinks.metric_snapshot import count_decisions
from tests.sinks.sample import decision, one_by_one


def test_each_refused_row_of_a_request_for_many_isrs_is_counted() -> None:
    rows = [{"topic": "t", "partition": n, "error": "INELIGIBLE_REPLICA", "message": ""} for n in range(3)]
    refused = decision("answer", "REQUEST_REFUSED", request="alter_isrs", error="INELIGIBLE_REPLICA", results=rows)
    unclear = decision("answer", "REQUEST_REFUSED", request="alter_isrs", error="INVALID_REQUEST")
    done = decision("answer", "REQUEST_DONE", request="alter_isrs", error="NONE", results=[])
    assert count_decisions(runs_in(one_by_one([refused, unclear, done]))).failed_isr_updates == 4
