"""Sentences and lines name the principal of a request, if it is known."""

import msgspec
import pytest

from cli.decision_line import line_of
from history.told_events import told_event
from state.decisions import AclsDecision
from state.reason import Reason

ALICE = '"principal":"User:alice"'


@pytest.mark.parametrize(
    ("event", "told"),
    [
        ('"delete_topic","topic":"t"', "An admin asked to delete the topic t."),
        (f'"delete_topic","topic":"t",{ALICE}', "User:alice asked to delete the topic t."),
        (f'"broker_unregister","broker":1,{ALICE}', "User:alice unregistered broker 1."),
        (f'"create_acls","acls":[],{ALICE}', "User:alice asked for 0 ACLs."),
        (
            f'"broker_heartbeat","broker":3,"broker_epoch":1,"want_fence":true,"want_shutdown":false,{ALICE}',
            "User:alice asked to fence broker 3.",
        ),
        ('"delete_acls","filters":[]', "An admin asked to delete ACLs."),
    ],
)
def test_an_events_sentence_names_the_principal_that_asked(event: str, told: str) -> None:
    assert told_event(f'{{"time_ms":1,"kind":{event}}}'.encode()) == told


def test_a_decisions_line_says_by_whom() -> None:
    decision = AclsDecision(seq=7, controller_epoch=1, time_ms=1, reason=Reason.ACLS_CHANGED, principal="User:alice")
    assert line_of(decision) == "     7  ACLs: 0 created, 0 deleted  (ACLS_CHANGED, by User:alice)"
    forged = msgspec.structs.replace(decision, principal="User:\x1b[2J\n")
    assert line_of(forged).endswith(r"by User:\x1b[2J\n)")
