"""The door itself."""

import ast
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller_logic import commit as commit_module
from controller_logic import isr
from controller_logic.replay import first_states, logged
from controller_logic.step import step
from state.cluster import Totals
from state.decisions import Answer, Rejected
from state.events import AnyEvent, Logged, Progress
from state.policy import Policy
from state.stored import codec
from tests.support.world import World

ROOT = Path(__file__).parents[2]
MINIMAL: dict[str, dict[str, Any]] = {
    "broker_register": {"broker": 1, "incarnation": "i"},
    "broker_heartbeat": {"broker": 1, "broker_epoch": 1, "want_fence": False, "want_shutdown": False},
    "broker_connection_lost": {"broker": 1, "broker_epoch": 1},
    "broker_unregister": {"broker": 1},
    "controlled_shutdown": {"broker": 1, "broker_epoch": 1},
    "alter_isr": {
        "topic": "t",
        "partition": 0,
        "broker": 1,
        "broker_epoch": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "isr": [1],
    },
    "log_end_offset": {"topic": "t", "partition": 0, "broker": 1, "leader_epoch": 0, "log_end_offset": 1},
    "replica_log": {
        "topic": "t",
        "partition": 0,
        "broker": 1,
        "broker_epoch": 1,
        "last_written_epoch": 0,
        "log_end_offset": 1,
        "high_watermark": 0,
    },
    "replica_report": {
        "topic": "t",
        "partition": 0,
        "broker": 1,
        "broker_epoch": 1,
        "leader_epoch": 0,
        "outcome": "leader",
    },
    "create_topic": {"topic": "t"},
    "delete_topic": {"topic": "t"},
    "create_partitions": {"topic": "t", "total": 2},
    "alter_reassignment": {"topic": "t", "partition": 0, "replicas": [1]},
    "elect_leaders": {"election_type": "preferred", "partitions": None},
    "alter_config": {"entity": "cluster", "config": {}},
    "controller_started": {"controller_id": "c", "controller_epoch": 1},
    "tick": {},
    "leader_imbalance": {"checked_seq": 1, "counts": {"1": [1, 2]}},
    "gateway_started": {"gateway": 100, "incarnation": "i", "voters": [100]},
    "gateway_heartbeat": {"gateway": 100, "incarnation": "i"},
    "allocate_producer_ids": {"broker": 1, "broker_epoch": 1},
    "sessions_extended": {"by_ms": 1},
    "alter_isrs": {"broker": 1, "broker_epoch": 1, "topics": [{"topic": "t", "partitions": [[0, 0, 0, [1]]]}]},
    "replica_reports": {"broker": 1, "broker_epoch": 1, "topics": [{"topic": "t", "partitions": [[0, 0, "leader"]]}]},
    "log_end_offsets": {"broker": 1, "broker_epoch": 1, "topics": [{"topic": "t", "partitions": [[0, 0, 5]]}]},
    "assign_replicas_to_dirs": {"topic": "t", "broker": 1, "broker_epoch": 1, "directory": "A", "partitions": [0]},
    "raise_level": {"level": 1},
    "create_acls": {"acls": []},
    "delete_acls": {"filters": []},
    "alter_entity": {"entity_type": "group", "names": {"group": "g"}, "values": {}},
    "isr_written": {
        "topic": "t",
        "partition": 0,
        "broker": 1,
        "leader_epoch": 0,
        "partition_epoch": 0,
        "isr": [1],
    },
    "observed": {
        "cluster_id": "c",
        "offset": 1,
        "last_offset": 1,
        "epoch": 1,
        "cause": "seed",
        "certainty": "certain",
        "results": {},
    },
    "adopt_topic": {"topic": "t", "topic_id": "TP9lxr6dp7ZsOP5Q0S-ctQ", "partitions": [{"replicas": [1]}]},
}


def test_every_kind_of_event_has_an_example() -> None:
    assert set(MINIMAL) == {kind.__struct_config__.tag for kind in AnyEvent.__args__}


@pytest.mark.parametrize("kind", MINIMAL)
@pytest.mark.parametrize("brokers", [(), (1,)])
def test_every_kind_of_request_is_answered(kind: str, brokers: tuple[int, ...]) -> None:
    world = World(*brokers)
    world.publish(kind, **MINIMAL[kind], request_id="q")
    answer = world.one(Answer)
    assert (answer.request_id, answer.request) == ("q", kind)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"", ""),
        (b"[1]", ""),
        (b"\xff\x00", ""),
        (b'{"kind":"tick"}', "time_ms"),
        (b'{"kind":"tock","time_ms":1}', "kind"),
        (b'{"kind":"broker_unregister","time_ms":1,"broker":-1}', "broker"),
    ],
)
def test_an_unreadable_event_is_rejected_with_its_text(raw: bytes, field: str) -> None:
    world = World()
    world.publish_raw(raw)
    rejected = world.one(Rejected)
    assert (rejected.field, rejected.reason) == (field, "MALFORMED")
    assert rejected.raw == raw.decode(errors="backslashreplace")


def test_an_unreadable_request_is_answered() -> None:
    world = World()
    world.publish_raw(b'{"kind":"tock","time_ms":1,"request_id":5}')
    answer = world.one(Answer)
    assert (answer.error, answer.request_id, answer.request) == ("INVALID_REQUEST", 5, "tock")


def test_progress_moves_seq_and_clock_only() -> None:
    world = World(1)
    before = world.state.cluster
    outcome = step(world.state, [Logged(99, 77_000, Progress(), b"")], Policy())
    assert outcome.decisions == []
    assert outcome.changes == {}
    assert outcome.state.cluster == msgspec.structs.replace(before, seq=99, clock_ms=77_000)


def test_a_repeated_event_is_skipped() -> None:
    world = World(1)
    world.beat(1, request_id="q")
    again = list(logged([(world.state.cluster.seq, world.log[-1])]))
    outcome = step(world.state, again, Policy())
    assert (outcome.decisions, outcome.state.cluster) == ([], world.state.cluster)


def test_the_clock_never_goes_back() -> None:
    world = World(1)
    world.now = 5
    world.beat(1, request_id="q")
    assert world.one(Answer).time_ms == 1_000


def test_only_changed_topics_are_returned_for_storage() -> None:
    world = World(1, 2)
    world.create("t", (1,))
    world.create("u", (2,))
    events = list(logged([(99, b'{"kind":"broker_unregister","time_ms":9,"broker":1}')]))
    assert list(step(world.state, events, Policy()).changes) == ["t"]


def test_step_leaves_its_input_alone() -> None:
    world = World(1, 2)
    world.create("t", (1, 2))
    state = world.state
    topic = state.topics.get("t")
    assert topic is not None
    before = (codec.encode_cluster(state.cluster), codec.encode_topics([topic]))
    world.fence(1)
    assert (codec.encode_cluster(state.cluster), codec.encode_topics([topic])) == before


def test_an_invalid_override_is_ignored() -> None:
    world = World(1, num_partitions="2", broker_session_timeout_ms="soon")
    world.publish("create_topic", topic="t")
    assert world.state.cluster.totals == Totals(1, 2, 2, at_min_isr=2)


def test_a_change_that_breaks_an_invariant_is_withheld_and_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1, 2)
    world.create("t", (1, 2))
    before = world.partition("t")
    world.is_checked = False
    monkeypatch.setattr(commit_module, "broken_rules", lambda *_: ["the sky is blue"])
    world.alter_isr("t", (1,))
    rejected = world.one(Rejected)
    assert (rejected.field, rejected.reason) == ("partition", "INVARIANT_BROKEN")
    assert "the sky is blue" in rejected.message
    assert (world.error, world.partition("t")) == ("UNKNOWN_SERVER_ERROR", before)


def test_an_isr_with_fenced_members_is_withheld(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a rule admits a fenced broker to an ISR with others, nothing changes, and the next request is decided."""
    world = World(1, 2, 3)
    world.create("t", (1, 2, 3))
    world.fence(3)
    before = world.partition("t")
    world.is_checked = False
    with monkeypatch.context() as broken:
        broken.setattr(isr, "ineligible", lambda *_: None)
        world.alter_isr("t", (1, 2, 3))
    assert world.one(Rejected).reason == "INVARIANT_BROKEN"
    assert "a fenced member of another ISR is its only one" in world.one(Rejected).message
    assert (world.error, world.partition("t")) == ("UNKNOWN_SERVER_ERROR", before)
    world.alter_isr("t", (1,))
    assert (world.error, world.partition("t").isr) == ("NONE", (1,))


def test_several_withheld_changes_of_one_event_are_numbered(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(1, 2)
    world.create("t", (1, 2), (1, 2))
    world.is_checked = False
    monkeypatch.setattr(commit_module, "broken_rules", lambda *_: ["the sky is blue"])
    world.fence(1)
    assert [(r.topic, r.partition) for r in world.all(Rejected)] == [("t", 0), ("t", 1)]


@pytest.mark.parametrize("folder", ["state", "controller_logic"])
def test_rules_import_no_clock_no_chance_no_engine(folder: str) -> None:
    banned = {"time", "datetime", "random", "secrets", "uuid", "os", "logging", "pyspark", "socket", "sqlite3"}
    for path in sorted((ROOT / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not {name.split(".")[0] for name in names} & banned, path


def test_an_empty_cluster_decides_nothing() -> None:
    assert step(first_states(1)[0], [], Policy()).decisions == []
