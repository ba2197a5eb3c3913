"""A recorded log through the rules."""

import json
from typing import Any

import pytest

from controller_logic import availability
from controller_logic import replay as replay_module
from controller_logic.guard import guarded_step
from controller_logic.replay import decide
from controller_logic.routing import route
from state.cluster import Outcome, State
from state.event_text import decode
from state.events import Logged, Malformed, Progress
from state.ids import shard_of
from state.policy import Policy
from tests.support.world import World

LOG = [
    json.dumps(event).encode()
    for event in (
        {"kind": "broker_register", "time_ms": 50, "broker": 1, "incarnation": "i", "request_id": 1},
        {"kind": "nonsense", "time_ms": 99_000},
        {"kind": "tick", "time_ms": 20, "request_id": 2},
        {"kind": "create_topic", "time_ms": 60, "topic": "t", "partitions": 0},
    )
]
ENTRIES = [(10 * place, raw) for place, raw in enumerate(LOG, start=1)]


def test_decisions_carry_the_seq_and_the_running_clock_of_well_formed_events() -> None:
    bodies = [json.loads(body) for _, _, body in decide(ENTRIES, Policy()).decisions]
    assert [(b["seq"], b["index"], b["kind"], b["time_ms"]) for b in bodies] == [
        (10, 0, "broker", 50),
        (10, 1, "answer", 50),
        (20, 0, "rejected", 50),
        (30, 0, "answer", 50),
        (40, 0, "answer", 60),
    ]


@pytest.mark.parametrize("shards", [1, 2, 7])
@pytest.mark.parametrize("batch_sizes", [(1,), (2, 1), (100,)])
def test_every_shard_ends_at_the_same_event(shards: int, batch_sizes: tuple[int, ...]) -> None:
    decided = decide(ENTRIES, Policy(), shards=shards, batch_sizes=batch_sizes)
    assert {(s.cluster.seq, s.cluster.clock_ms) for s in decided.states} == {(40, 60)}
    assert decided.decisions == decide(ENTRIES, Policy()).decisions


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_the_final_view_is_complete(shards: int) -> None:
    register, _, _, create = LOG
    beat = {"kind": "broker_heartbeat", "time_ms": 60, "broker": 1, "broker_epoch": 1}
    content = json.dumps(beat | {"want_fence": False, "want_shutdown": False}).encode()
    topics = [create.replace(b'"partitions": 0', b'"partitions": 1').replace(b'"t"', b'"%s"' % t) for t in (b"t", b"u")]
    view = decide(list(enumerate([register, content, *topics], start=1)), Policy(), shards=shards).view()
    assert [(p["topic"], p["leader"]) for p in view["partitions"]] == [("t", 1), ("u", 1)]
    assert (view["seq"], [b["broker"] for b in view["brokers"]]) == (4, [1])


def test_one_shard_takes_batches_of_the_given_sizes_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    def stepping(state: State, events: list[Logged], *rest: Any, **named: Any) -> Outcome:
        sizes.append(len(events))
        return guarded_step(state, events, *rest, **named)

    monkeypatch.setattr(replay_module, "guarded_step", stepping)
    assert len(decide([*ENTRIES, (50, LOG[2])], Policy(), batch_sizes=(2, 1)).states) == 1
    assert sizes == [2, 1, 2]


def test_a_rule_is_asked_once_for_partitions_that_are_alike_in_all_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    rule = availability.replicas_failed

    def counted(batch: Any, topic: Any, *given: Any) -> None:
        asked.append(topic.topic)
        rule(batch, topic, *given)

    world = World(1, 2, 3)
    for name in "abcdef":
        world.create(name, (1, 2, 3))
    world.fence(1)
    monkeypatch.setattr(availability, "replicas_failed", counted)
    decided = decide(list(enumerate(world.log, start=1)), Policy(), shards=4)
    assert len({shard_of(name, 4) for name in "abcdef"}) > 1
    assert [line for line in decided.decisions if b'"LEADER_FENCED"' in line[2]][5:]
    assert len(asked) == 1


def test_the_clock_starts_unset() -> None:
    ((_, _, body),) = decide([(1, b'{"kind":"tick","time_ms":0,"request_id":1}')], Policy()).decisions
    assert json.loads(body)["time_ms"] == 0


def test_overrides_win() -> None:
    entries = [(1, b'{"kind":"create_topic","time_ms":1,"topic":"t"}')]
    bodies = decide(entries, Policy(num_partitions=2), overrides={"num.partitions": "100001"}).decisions
    assert json.loads(bodies[0][2])["error"] == "INVALID_PARTITIONS"


def test_a_topics_events_go_to_its_shard_others_to_all() -> None:
    topic = decode(LOG[3])
    assert route(topic, 16) == shard_of("t", 16)
    assert route(decode(LOG[0]), 16) is None
    assert route(Malformed(field="", message=""), 16) == 0
    assert route(Progress(), 16) is None
