"""Forms: what decisions have in common that are about other partitions, on other brokers."""

import pytest
from msgspec.structs import replace

from state.alike import AlikeDecisions, Saying, decisions_of, encoded, form_of, named_in_text
from state.decisions import AnyDecision, LeaderAndIsr, StopReplica, encode
from state.reason import Reason

COMMON = {"seq": 7, "controller_epoch": 2, "time_ms": 9}
SAID = {"seq": 123456, "controller_epoch": 78, "time_ms": 90}
LED = LeaderAndIsr(
    **COMMON,
    reason=Reason.LEADER_FENCED,
    topic="t",
    topic_id="id",
    partition=3,
    leader=0,
    leader_epoch=0,
    isr=(0, 3),
    partition_epoch=0,
    replicas=(3, 7, 0),
    adding_replicas=(),
    removing_replicas=(),
    leader_recovery_state="RECOVERED",
    is_new=False,
    unclean=False,
    to=(0, 3),
    passed_over={3: "NOT_IN_SYNC", 7: "BROKER_FENCED"},
    directories={0: "100%d"},
)
STOPPED = StopReplica(
    **COMMON,
    reason=Reason.CONTROLLED_SHUTDOWN,
    topic="t",
    topic_id="i",
    partition=0,
    leader_epoch=0,
    delete=False,
    to=(7,),
)


def test_a_decision_about_a_broker_without_a_replica_has_no_form() -> None:
    assert form_of(replace(STOPPED, to=(7, 8)), LED.replicas) is None


@pytest.mark.parametrize("decision", [LED, STOPPED])
@pytest.mark.parametrize("topic", ["u", 'quo"te', "100%d", "näme", '","partition":0'])
@pytest.mark.parametrize("ids", [(0, 1, 2), (10**9, 4, 2**31 - 1), (3, 7, 0)])
def test_a_row_has_the_bytes_of_the_decision_that_it_stands_for(
    decision: LeaderAndIsr | StopReplica, topic: str, ids: tuple[int, ...]
) -> None:
    form = form_of(decision, LED.replicas)
    assert form is not None
    rows = [(named_in_text(topic, f"id of {topic}"), 12, form, ids, 34, 56)]
    alike = AlikeDecisions(Saying(123456, 78, 90), form.rank, rows)
    first, second, third = ids
    named = {"topic": topic, "topic_id": f"id of {topic}", "partition": 12, "leader_epoch": 34}
    if isinstance(decision, LeaderAndIsr):
        told = {"passed_over": {first: "NOT_IN_SYNC", second: "BROKER_FENCED"}, "directories": {third: "100%d"}}
        led = {"leader": third, "isr": (third, first), "replicas": ids, "to": (third, first), "partition_epoch": 56}
        expected: AnyDecision = replace(decision, **SAID | named | led | told)
    else:
        expected = replace(decision, **SAID | named, to=(second,))
    assert encoded(alike) == [encode(expected)]
    assert decisions_of([alike]) == [expected]
