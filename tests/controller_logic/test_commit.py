"""Rules decide, and only the commit pipeline changes state: checks of the source, and of reassignments."""

import ast
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from msgspec.structs import replace

from controller_logic import working_state, working_topic
from controller_logic.batch import Batch
from controller_logic.commit import commit_partition, recheck_reassignment
from controller_logic.decision_recorder import DecisionRecorder
from controller_logic.running_totals import RunningTotals
from controller_logic.step import HANDLERS
from state.alike import decisions_of
from state.change import PartitionChange
from state.events import AnyEvent, Malformed, Progress
from state.reason import Reason
from tests.controller_logic.moving import move
from tests.support.world import World

ROOM = Path(__file__).resolve().parents[2] / "controller_logic"
PIPELINE = {
    "batch",
    "commit",
    "commit_cluster",
    "commit_observed",
    "commit_reports",
    "commit_topic",
    "decision_recorder",
}
PIPELINE |= {"running_totals", "commit_alike", "working_partitions", "working_state", "working_topic"}
# Runs the rules on a log, and keeps the states between batches. No rule calls it.
DRIVERS = {"replay"}
RULES = sorted(path for path in ROOM.glob("*.py") if path.stem not in PIPELINE | DRIVERS)
# Those of lists, sets and dicts.
CHANGING_METHODS = {"append", "extend", "insert", "clear", "pop", "popitem", "update", "add", "remove", "discard"}
CHANGING_METHODS |= {"setdefault", "sort", "reverse"}
# Of the recorder. A refusal or an answer changes no state, so there is nothing to commit.
RECORDED_BY_RULES = {"answer", "answer_if_requested", "reject", "said_now"}
# The door begins each event, and has the admin named in the decisions on it.
OF_THE_DOOR = {("step", "batch.begin"), ("step", "batch.recorder.name_admin")}
READS = {"topic", "topics", "twin_of", "live_replicas", "leaderless", "has_replica_in", "partition", "frozen"}
READS |= {"is_deleting", "is_reassigning", "is_queued_for_deletion", "shown_state", "policy_under"}
READS |= {"brokers", "totals", "backlog"}


def changing_methods() -> set[str]:
    kinds = (working_state.WorkingState, working_topic.WorkingTopic, RunningTotals)
    names = {name for kind in kinds for name, held in vars(kind).items() if callable(held) and not name.startswith("_")}
    return names - READS


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_set_no_field_and_append_no_decision(path: Path) -> None:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        flat = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
        found += [ast.unparse(target) for target in flat if isinstance(target, ast.Attribute)]
        found += [ast.unparse(t) for t in flat if isinstance(t, ast.Subscript) and isinstance(t.value, ast.Attribute)]
        if isinstance(node, ast.Attribute) and node.attr in ("said", "decisions"):
            found += [ast.unparse(node)] if ast.unparse(node.value).endswith("recorder") else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = ast.unparse(node.func.value)
            is_state = of in ("batch.state", "state", "topic", "batch.state.totals")
            found += [ast.unparse(node.func)] if is_state and node.func.attr in changing_methods() else []
            is_of_batch = of.startswith(("batch.", "state.", "topic."))
            found += [ast.unparse(node.func)] if is_of_batch and node.func.attr in CHANGING_METHODS else []
            is_of_recorder = of.endswith("recorder") and node.func.attr not in RECORDED_BY_RULES
            is_refused = is_of_recorder or (of, node.func.attr) == ("batch", "begin")
            if is_refused and (path.stem, ast.unparse(node.func)) not in OF_THE_DOOR:
                found.append(ast.unparse(node.func))
    assert found == []


def test_the_search_for_changes_knows_the_methods_that_change() -> None:
    assert {
        "put",
        "put_broker",
        "put_settings",
        "add_topic",
        "remove_topic",
        "take_out",
        "put_state",
    } <= changing_methods()
    assert "say_broker" in vars(DecisionRecorder)


def test_every_kind_of_event_has_a_handler() -> None:
    assert set(HANDLERS) == {*get_args(AnyEvent), Malformed, Progress}


@pytest.mark.parametrize("kind", HANDLERS, ids=lambda kind: kind.__name__)
def test_a_handler_takes_the_event_that_it_is_listed_for(kind: type) -> None:
    *_, (_, event) = [(name, hint) for name, hint in get_type_hints(HANDLERS[kind]).items() if name != "return"]
    assert event is kind


def test_a_reassignment_is_rechecked_without_a_change_of_the_partition() -> None:
    world = World(1, 2, 3)
    world.create("t", (1, 2))
    world.fence(2)
    move(world, 1, 2, 3)
    batch = Batch(world.state, world.policy, {})
    topic = batch.state.topic("t")
    assert topic is not None
    before = topic.partitions[0]
    assert before.is_reassigning
    assert recheck_reassignment(batch, topic, before) is before
    assert (decisions_of(batch.recorder.said), topic.differs) == ([], False)
    moving = replace(before, adding_replicas=(), removing_replicas=(3,), isr=(1,))
    after = recheck_reassignment(batch, topic, moving)
    assert (after.replicas, after.is_reassigning) == ((1, 2), False)
    assert recheck_reassignment(batch, topic, after) is after


def test_a_reassignment_ends_in_the_change_that_caused_it() -> None:
    world = World(1, 2, 3)
    world.create("t", (1, 2))
    move(world, 2, 3)
    batch = Batch(world.state, world.policy, {})
    topic = batch.state.topic("t")
    assert topic is not None
    before = topic.partitions[0]
    joined = PartitionChange(isr=(1, 2, 3), by_leader=True)
    after = commit_partition(batch, topic, before, joined, Reason.ISR_EXPANDED)
    assert (after.replicas, after.leader, after.leader_epoch) == ((2, 3), 2, before.leader_epoch + 1)
    assert [decision.reason for decision in decisions_of(batch.recorder.said)] == [Reason.REASSIGNMENT] * 2
