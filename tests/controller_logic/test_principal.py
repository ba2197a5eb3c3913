"""Every decision that an admin's request caused names the principal of the request."""

from typing import Any

import pytest
from msgspec import UNSET

from controller_logic.guard import guarded_step
from state.canonical import number
from state.decisions import Answer, LeaderAndIsr, TopicDecision, decode
from state.event_text import decode as decode_event
from state.events import Logged
from tests.support.world import World

ALICE = "User:alice"
# A name with all that is special in the texts through which decisions go.
ODD = 'User:CN=100%d "index":0, "topic":"",\\,O=%'


def world() -> World:
    started = World()
    started.publish("controller_started", controller_id="c", controller_epoch=1)
    for broker in (1, 2, 3):
        started.join(broker)
    return started


def create(started: World, **fields: Any) -> None:
    asked = {"topic": "t", "assignment": {"0": [1, 2], "1": [2, 1], "2": [2, 3]}, "request_id": "q"}
    started.publish("create_topic", **asked | fields)


@pytest.mark.parametrize("principal", [ALICE, ODD])
def test_each_decision_on_a_request_names_who_asked(principal: str) -> None:
    started = world()
    create(started, principal=principal)
    assert {type(one) for one in started.decisions} >= {TopicDecision, LeaderAndIsr, Answer}
    assert {one.principal for one in started.decisions} == {principal}
    started.publish("broker_unregister", broker=2, principal=principal)
    assert len(started.all(LeaderAndIsr)) == 3
    assert {one.principal for one in started.decisions} == {principal}


@pytest.mark.parametrize("principal", [ALICE, ODD])
def test_a_request_that_is_refused_names_who_asked(principal: str) -> None:
    started = world()
    started.publish("delete_topic", topic="none", request_id=1, principal=principal)
    assert (started.error, started.one(Answer).principal) == ("UNKNOWN_TOPIC_OR_PARTITION", principal)


@pytest.mark.parametrize("nobody", [{}, {"principal": None}, {"principal": ""}])
def test_nobody_is_named_if_nobody_is_known(nobody: dict[str, Any]) -> None:
    started = world()
    create(started, **nobody)
    assert {one.principal for one in started.decisions} == {UNSET}


def test_what_follows_later_has_no_principal() -> None:
    started = world()
    create(started, principal=ALICE)
    for broker in (2, 3):
        started.beat(broker, fence=True)
        assert {one.principal for one in started.decisions} == {UNSET}


def test_names_of_many_partitions_travel_in_runs() -> None:
    """A batch has an admin's request about many partitions between two of the same kind without a principal."""
    started = world()
    create(started, assignment={str(number): [1, 2] for number in range(50)})
    beats = [f'{{"kind":"broker_unregister","time_ms":9,"broker":{broker}' for broker in (1, 2)]
    texts = [f"{beats[0]}}}", beats[1] + ',"principal":"User:100%d"}']
    seq = started.state.cluster.seq
    events = [Logged(seq + n, 9, decode_event(text.encode()), text.encode()) for n, text in enumerate(texts, 1)]
    parts = guarded_step(started.state, events, started.policy, overrides={}).parts
    decided = [decode(body) for _, _, body in number(parts)]
    assert {one.principal for one in decided if one.seq == seq + 1} == {UNSET}
    assert {one.principal for one in decided if one.seq == seq + 2} == {"User:100%d"}
    changed = [one for one in decided if isinstance(one, LeaderAndIsr) and one.seq == seq + 2]
    assert [(one.partition, one.index) for one in changed] == [(number, number) for number in range(50)]
