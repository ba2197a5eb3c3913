"""Every command that shows the state shows it as it was, too."""

import json

import pytest

from bus.embedded import EmbeddedBus
from tests.cli.conftest import Isrflow
from tests.cli.worked_cluster import said

COMMANDS = (
    ("topics", "list"),
    ("topics", "describe"),
    ("partitions", "list"),
    ("partitions", "describe", "orders-0"),
    ("brokers", "list"),
    ("brokers", "describe", "1"),
    ("risk",),
    ("reassign", "list"),
    ("state", "cat", "/topics"),
    ("state", "tree", "/topics"),
    ("describe",),
)


def test_a_state_of_the_past_is_the_one_that_was_shown_then(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    then = {arguments: said(isrflow, *arguments) for arguments in COMMANDS}
    seq = cluster.decided_seq()
    said(isrflow, "topics", "create", "clicks", "--partitions", "3")
    said(isrflow, "topics", "alter", "orders", "--config", "min.insync.replicas=2")
    said(isrflow, "reassign", "execute", "--reassignment-json-file", "plan.json")
    said(isrflow, "brokers", "fence", "1")
    for arguments, former in then.items():
        assert said(isrflow, *arguments) != former, arguments
        at = said(isrflow, *arguments, "--at", str(seq))
        # Ticks go on meanwhile.
        assert _without_time(at) == _without_time(former), arguments


def test_the_health_of_the_past_is_judged(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    seq = cluster.decided_seq()
    before = isrflow("health", "--at", str(seq), "--format", "json")
    said(isrflow, "brokers", "fence", "1")
    after = isrflow("health", "--format", "json")
    again = json.loads(isrflow("health", "--at", str(seq), "--format", "json").stdout)
    assert again == json.loads(before.stdout)
    assert (again["seq"], 1 in again["not_active"]) == (seq, False)
    assert 1 in json.loads(after.stdout)["not_active"]
    assert f"seq {seq}" in isrflow("health", "--at", str(seq)).stdout
    assert isrflow("health", "--at", str(seq), "--watch").exit_code == 2


def _without_time(document: object) -> object:
    if isinstance(document, dict):
        moving = {"seq", "time_ms", "clock_skew_ms", "backlog"}
        return {name: _without_time(value) for name, value in document.items() if name not in moving}
    return [_without_time(one) for one in document] if isinstance(document, list) else document


@pytest.mark.parametrize("arguments", COMMANDS)
def test_what_is_no_moment_is_refused(isrflow: Isrflow, cluster: EmbeddedBus, arguments: tuple[str, ...]) -> None:
    done = isrflow(*arguments, "--at", "noon")
    assert (done.exit_code, "--at: 'noon' is not a moment: expected a seq" in done.stderr) == (2, True)


def test_an_explanation_begins_where_it_is_told_to(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    seq = cluster.decided_seq() + 1
    said(isrflow, "brokers", "fence", "1")

    def steps(*arguments: str) -> list[int]:
        done = isrflow("partitions", "explain", "orders-0", "--format", "json", *arguments)
        return [step["seq"] for step in json.loads(done.stdout)["steps"]]

    whole = steps()
    assert len(whole) > 1
    assert steps("--from", str(seq)) == [one for one in whole if one >= seq] == whole[-1:]
    lines = isrflow("partitions", "explain", "orders-0", "--from", str(seq)).stdout.splitlines()
    assert "There are older changes: a greater --limit, or an earlier --from, shows more of them." in lines
    nothing = isrflow("partitions", "explain", "orders-0", "--from", str(whole[-1] + 1)).stdout.splitlines()
    assert nothing[0].startswith("orders-0 as of seq ")
    assert steps("--from", str(whole[-1] + 1)) == []


def test_a_long_list_of_a_broker_is_shortened(isrflow: Isrflow, cluster: EmbeddedBus) -> None:
    said(isrflow, "topics", "create", "wide", "--replica-assignment", ",".join(["1:2"] * 30))
    [leads] = [line for line in isrflow("brokers", "describe", "1").stdout.splitlines() if line.startswith("Leads:")]
    assert leads.endswith(" and 22 more")
    assert len(said(isrflow, "brokers", "describe", "1")["leads"]) == 32
