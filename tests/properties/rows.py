"""How an event with many rows is compared with its rows as events of their own."""

import msgspec

from controller_logic.replay import decide, logged
from controller_logic.step import step
from state.cluster import State
from state.decisions import Answer, AnyDecision
from state.events import LogEndOffsets, ReplicaReports
from state.policy import Policy
from tests.support.by_reference import by_reference
from tests.support.lying_clocks import entries
from tests.support.random_logs import walk
from tests.support.scenes import Draw

POLICY = Policy(num_partitions=6, leader_imbalance_check_interval_seconds=1)


def played(state: State, raws: list[bytes]) -> tuple[State, list[AnyDecision]]:
    """Decide events one by one; return the state after them, and all decisions."""
    decisions: list[AnyDecision] = []
    for raw in raws:
        outcome = step(state, list(logged(entries([raw], state.cluster.seq + 1))), POLICY)
        decisions += outcome.decisions
        state = outcome.state
    return state, decisions


def refused(decisions: list[AnyDecision]) -> list[tuple[str, str]]:
    """List the errors of answers, and their messages."""
    answers = [one for one in decisions if isinstance(one, Answer) and one.error != "NONE"]
    return sorted((one.error, one.message) for one in answers)


def as_events(kind: str, report: LogEndOffsets | ReplicaReports) -> list[bytes]:
    """Write each row of a broker's report as an event of its own."""
    common = {
        "kind": kind,
        "time_ms": report.time_ms,
        "broker": report.broker,
        "broker_epoch": report.broker_epoch,
        "request_id": report.request_id,
    }
    return [
        msgspec.json.encode({**common, "topic": named.topic, "topic_id": named.topic_id, **msgspec.structs.asdict(row)})
        for named in report.topics
        for row in named.partitions
    ]


def stored(state: State) -> tuple[object, ...]:
    """Return what both ways must lead to: all topics, and all that is counted or due."""
    cluster = state.cluster
    topics = [state.topics.get(name) for name in state.topics.names()]
    return topics, cluster.totals, cluster.backlog, cluster.watermarks_due, cluster.deletions_due


def decided_alike_in_any_shards_and_batches(drawn: list[Draw]) -> None:
    """Check that neither shards nor batches nor effects that are repeated show in the decisions on a random log."""
    log = list(entries(raw for _, raw, _ in walk(drawn, POLICY)))
    whole = decide(log, POLICY)
    assert decide(log, POLICY, shards=5, batch_sizes=(3, 1)).decisions == whole.decisions
    with by_reference():
        assert decide(log, POLICY, shards=2).decisions == whole.decisions
