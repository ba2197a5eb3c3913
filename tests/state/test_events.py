"""Reading events: what is understood, and how what is not is named."""

import pytest

from isrflow.state.event_text import decode
from isrflow.state.events import AlterIsr, Malformed, Tick


def test_an_event_is_read() -> None:
    event = decode(
        b'{"kind":"alter_isr","time_ms":5,"request_id":"q","topic":"t","partition":0,"broker":1,"broker_epoch":7,'
        b'"leader_epoch":2,"partition_epoch":3,"isr":[1,2],"leader_recovery_state":"RECOVERING","new_in_version_2":{}}'
    )
    assert isinstance(event, AlterIsr)
    assert (event.request_id, event.isr, event.isr_epochs, event.leader_recovery_state) == (
        "q",
        (1, 2),
        None,
        "RECOVERING",
    )


def test_the_order_of_fields_and_those_of_the_bus_do_not_matter() -> None:
    assert decode(b'{"time_ms":5,"seq":3,"kind":"tick"}') == Tick(time_ms=5)


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b"", ""),
        (b"{", ""),
        (b"null", ""),
        (b'"tick"', ""),
        (b'{"kind":"tick","time_ms":1}x', ""),
        (b"[" * 20_000, ""),
        (b"{}", "kind"),
        (b'{"kind":7,"time_ms":1}', "kind"),
        (b'{"kind":"tock","time_ms":1}', "kind"),
        (b'{"kind":"tick"}', "time_ms"),
        (b'{"kind":"tick","time_ms":"1"}', "time_ms"),
        (b'{"kind":"tick","time_ms":1.5}', "time_ms"),
        (b'{"kind":"tick","time_ms":-1}', "time_ms"),
        (b'{"kind":"tick","time_ms":1,"request_id":[]}', "request_id"),
        (b'{"kind":"broker_unregister","time_ms":1}', "broker"),
        (b'{"kind":"broker_unregister","time_ms":1,"broker":-1}', "broker"),
        (b'{"kind":"broker_unregister","time_ms":1,"broker":true}', "broker"),
        (b'{"kind":"broker_unregister","time_ms":1,"broker":2147483648}', "broker"),
        (b'{"kind":"broker_unregister","time_ms":1,"broker":99999999999999999999999}', "broker"),
        (b'{"kind":"alter_reassignment","time_ms":1,"topic":"t","partition":0,"replicas":[1,-2]}', "replicas[1]"),
        (
            b'{"kind":"alter_reassignment","time_ms":1,"topic":"t","partition":0,"replicas":['
            + b",".join([b"1"] * 1_001)
            + b"]}",
            "replicas",
        ),
        (b'{"kind":"elect_leaders","time_ms":1,"election_type":"fair","partitions":null}', "election_type"),
        (
            b'{"kind":"elect_leaders","time_ms":1,"election_type":"unclean","partitions":[{"topic":"t"}]}',
            "partitions[0].partition",
        ),
        (b'{"kind":"delete_topic","time_ms":1,"topic":""}', "topic"),
        (b'{"kind":"delete_topic","time_ms":1,"topic":"\xff"}', ""),
    ],
)
def test_the_field_in_question_is_named(raw: bytes, field: str) -> None:
    event = decode(raw)
    assert isinstance(event, Malformed)
    assert event.field == field
    assert event.message


def test_what_could_be_read_of_a_bad_event_is_kept_for_its_answer() -> None:
    event = decode(b'{"kind":"delete_topic","time_ms":"x","request_id":12}')
    assert isinstance(event, Malformed)
    assert (event.request, event.request_id) == ("delete_topic", 12)


def test_an_unreadable_kind_does_not_hide_the_request_id() -> None:
    event = decode(b'{"kind":[],"time_ms":1,"request_id":12}')
    assert isinstance(event, Malformed)
    assert (event.request, event.request_id) == ("", 12)
