"""An event in an envelope keeps every byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.interface import Entry
from history.envelope import enveloped, opened

JSON = [b'{"kind":"tick","time_ms":1}', b'{ "a" : [1, 2] }', b"1", b'"text"', b"null", b'{"a":"\\u00e4\xc3\xa4"}']
OTHERS = [
    b"",
    b" ",
    b"no event",
    b'{"a":1} ',
    b'{"a":\n1}',
    b"\xff\xfe",
    b'{"a":"\xff"}',
    b"[" * 5_000,
    b'{"a":1},"seq":2',
    b"1e999",
]


@pytest.mark.parametrize("raw", JSON + OTHERS)
def test_an_event_comes_back_byte_for_byte(raw: bytes) -> None:
    entry = Entry(7, raw, 1_000, True, None)
    line = enveloped(entry)
    assert opened(line) == entry
    assert b"\n" not in line
    assert (b'"event":' in line) == (raw in JSON)


@given(
    st.integers(1, 2**63 - 1),
    st.binary(max_size=40) | st.sampled_from(JSON + OTHERS),
    st.none() | st.integers(0, 2**53),
    st.none() | st.booleans(),
    st.none() | st.integers(0, 2**53),
)
def test_any_bytes_and_facts_come_back(
    seq: int, raw: bytes, entered: int | None, claim: bool | None, found: int | None
) -> None:
    entry = Entry(seq, raw, entered, claim, found)
    assert opened(enveloped(entry).strip()) == entry


@pytest.mark.parametrize("line", [b"", b"{}", b'{"kind":"tick","seq":1}', b'{"seq":1,"envelope":1}'])
def test_other_lines_are_no_envelopes(line: bytes) -> None:
    assert opened(line) is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b'{"envelope":2,"seq":1,"event":1}', "has version 2; this isrflow reads version 1"),
        (b'{"envelope":1,"seq":0,"event":1}', "seq is 0; expected a positive integer"),
        (b'{"envelope":1,"seq":1}', "the envelope is empty: expected event or event_base64"),
        (b'{"envelope":1,"event":1}', "missing required field `seq`"),
        (b'{"envelope":1,"seq":1,"event_base64":"?"}', "cannot be read"),
        (b'{"envelope":1,"seq":1,"entered_ms":-1,"event":1}', "entered_ms"),
    ],
)
def test_a_damaged_envelope_is_named(line: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("?", "\\?").replace("(", "\\(")):
        opened(line)
