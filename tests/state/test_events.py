"""Reading events: what is understood, and how errors are named."""

import pytest

from state.event_text import MESSAGE_CHARS_MAX, decode
from state.events import AlterIsr, Malformed, Tick
from state.nesting import LEVELS_MAX, is_too_deep


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
        (b'{"kind":"tick","time_ms":"a","x":' + b"[" * 995 + b"]" * 995 + b"}", ""),
        (b'{"kind":"tick","time_ms":1,"x":' + b'{"":' * 100 + b"1" + b"}" * 100 + b"}", ""),
        (b'{"kind":"create_topic","time_ms":1,"topic":"t","assignment":{"0\\n":[1]}}', "assignment"),
        ('{"kind":"create_topic","time_ms":1,"topic":"t","assignment":{"\u0663":[1]}}'.encode(), "assignment"),
        (b'{"kind":"tick","time_ms":1,"request_id":' + b"9" * 5_000 + b"}", "request_id"),
        (b'{"kind":"tick","time_ms":NaN}', ""),
        (b'{"kind":"tick","time_ms":1,"request_id":"\\ud800"}', ""),
        (b'{"kind":"tick","kind":"broker_unregister","time_ms":1,"broker":1}', "kind"),
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
def test_the_wrong_field_is_named(raw: bytes, field: str) -> None:
    event = decode(raw)
    assert isinstance(event, Malformed)
    assert event.field == field
    assert event.message


def test_the_readable_part_of_a_bad_event_is_kept_for_its_answer() -> None:
    event = decode(b'{"kind":"delete_topic","time_ms":"x","request_id":12}')
    assert isinstance(event, Malformed)
    assert (event.request, event.request_id) == ("delete_topic", 12)


def test_an_unreadable_kind_does_not_hide_the_request_id() -> None:
    event = decode(b'{"kind":[],"time_ms":1,"request_id":12}')
    assert isinstance(event, Malformed)
    assert (event.request, event.request_id) == ("", 12)


def test_error_messages_are_short_however_long_the_value() -> None:
    for text in (b'{"kind":"%s"}', b'{"kind":"elect_leaders","time_ms":1,"partitions":null,"election_type":"%s"}'):
        event = decode(text % (b" - at `x" * 100_000))
        assert isinstance(event, Malformed)
        assert event.field in ("kind", "election_type")
        assert len(event.message) < 2 * MESSAGE_CHARS_MAX


def test_a_text_is_read_the_same_at_any_stack_depth() -> None:
    """A recursive reader would give up sooner when it is called from a deeper stack."""

    def further_down(levels: int, raw: bytes) -> object:
        return decode(raw) if levels == 0 else further_down(levels - 1, raw)

    for levels in (LEVELS_MAX - 1, LEVELS_MAX, 300, 900):
        for bad in (b"1", b'"a"'):
            raw = b'{"kind":"tick","time_ms":%s,"x":%s%s}' % (bad, b"[" * levels, b"]" * levels)
            assert further_down(600, raw) == decode(raw)
            assert isinstance(decode(raw), Tick) == (levels < LEVELS_MAX and bad == b"1")


@pytest.mark.parametrize(
    ("text", "is_too"),
    [
        (b"[" * 100 + b"]" * 100, False),
        (b"[" * 101 + b"]" * 101, True),
        (b"[" * 101, True),
        (b"[{}]" * 200, False),
        ((b"[" * 13 + b"]" * 13) * 20, False),
        ((b"[" * 5 + b"]" * 5) * 40 + b"{" * 101, True),
        (b'"' + b"[" * 200 + b'"', False),
        (b'"' + b"[" * 50 + b'"' + b"[" * 100, False),
        (b'["' + b'\\"' * 5 + b"[" * 200 + b'"]', False),
        (b'["' + b"\\\\" * 5 + b'"' + b"[" * 200, True),
        (b'"' + b"[" * 200, False),
        (b"]" * 200 + b"[" * 200, False),
        (b"[" * 60 + (b"[" * 60 + b"]" * 60) + b"x", True),
    ],
)
def test_depth_is_counted_outside_of_strings(text: bytes, is_too: bool) -> None:
    assert is_too_deep(text) == is_too
