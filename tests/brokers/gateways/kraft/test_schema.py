"""The codec for Kafka's schema dialect: the same bytes as another codec's, and clear errors."""

import json
import uuid
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from brokers.gateways.kraft.messages import layouts, message
from brokers.wire.layout import FieldLayout, LayoutError, read_layout
from brokers.wire.plain import uuid_bytes, uuid_text, write_uvarint
from brokers.wire.schema import Message, MessageError

EVERY_VERSION = [
    (name, version) for name, layout in layouts().items() for version in range(layout.valid.low, layout.valid.high + 1)
]


def made_of(*fields: dict[str, Any], flexible: str = "0+", valid: str = "0-3") -> Message:
    """Make a message for one test."""
    head = {"type": "data", "name": "Sample", "validVersions": valid, "flexibleVersions": flexible}
    return Message(read_layout(json.dumps(head | {"fields": [{"versions": "0+"} | field for field in fields]})))


def drawn(draw: st.DrawFn, fields: tuple[FieldLayout, ...], version: int) -> dict[str, Any]:
    """Draw values for the fields of a version."""
    return {field.name: drawn_field(draw, field, version) for field in fields if version in field.versions}


def drawn_field(draw: st.DrawFn, field: FieldLayout, version: int) -> Any:
    if version in field.nullable and draw(st.booleans()):
        return None
    if field.array:
        return [drawn_one(draw, field, version) for _ in range(draw(st.integers(0, 2)))]
    return drawn_one(draw, field, version)


def drawn_one(draw: st.DrawFn, field: FieldLayout, version: int) -> Any:
    if field.type == "struct":
        return drawn(draw, field.fields, version)
    bits = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
    if field.type in bits:
        return draw(st.integers(-(2 ** bits[field.type]), 2 ** bits[field.type] - 1))
    others: dict[str, st.SearchStrategy[Any]] = {
        "bool": st.booleans(),
        "uint16": st.integers(0, 2**16 - 1),
        "uint32": st.integers(0, 2**32 - 1),
        "float64": st.floats(allow_nan=False),
        "uuid": st.binary(min_size=16, max_size=16).map(uuid_text),
        "string": st.text(max_size=5),
        "bytes": st.binary(max_size=5),
        "records": st.binary(max_size=5),
    }
    return draw(others[field.type])


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, int, dict[str, Any]]:
    name, version = draw(st.sampled_from(EVERY_VERSION))
    found = message(name)
    return found, version, drawn(draw, found.layout.fields, version)


def carried(fields: tuple[FieldLayout, ...], version: int, values: Any) -> Any:
    """Drop the fields that the version does not have from decoded values."""
    found = {}
    for field in fields:
        if version in field.versions:
            value = values[field.name]
            if field.type == "struct" and value is not None:
                one = [carried(field.fields, version, v) for v in (value if field.array else [value])]
                value = one if field.array else one[0]
            found[field.name] = value
    return found


@settings(deadline=None)
@given(messages())
def test_what_is_written_is_read_back(case: tuple[Message, int, dict[str, Any]]) -> None:
    found, version, values = case
    data = found.encode(version, values)
    read = found.decode(version, data)
    assert carried(found.layout.fields, version, read) == values
    assert found.encode(version, read) == data


@settings(deadline=None)
@given(messages(), st.data())
def test_damaged_bytes_only_raise_errors(case: tuple[Message, int, dict[str, Any]], data: st.DataObject) -> None:
    found, version, values = case
    whole = found.encode(version, values)
    cut = whole[: data.draw(st.integers(0, max(len(whole) - 1, 0)))]
    if cut != whole:
        with pytest.raises(MessageError, match=f"^{found.name} v{version}: "):
            found.decode(version, cut)
    damaged = bytearray(whole)
    if damaged:
        damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
        try:
            found.decode(version, damaged)
        except MessageError as error:
            assert str(error).startswith(f"{found.name} v{version}: ")
    with pytest.raises(MessageError, match="1 bytes are left over"):
        found.decode(version, whole + b"\0")


# The APIs that kafka-python also has in full. It encodes tagged structs by another rule.
SHARED = {
    "CreateTopicsRequest": [2, 4, 5, 7],
    "DeleteTopicsRequest": [1, 4, 6],
    "CreatePartitionsResponse": [0, 3],
    "AlterPartitionReassignmentsRequest": [0],
    "ListPartitionReassignmentsResponse": [0],
    "ElectLeadersResponse": [0, 2],
    "IncrementalAlterConfigsRequest": [0, 1],
    "AlterConfigsRequest": [0, 2],
    "DescribeClusterResponse": [0, 1],
    "UpdateFeaturesRequest": [0, 1],
}


@pytest.mark.parametrize(("name", "version"), [(name, v) for name, versions in SHARED.items() for v in versions])
@settings(deadline=None, max_examples=30)
@given(data=st.data())
def test_another_codec_writes_the_same_bytes(name: str, version: int, data: st.DataObject) -> None:
    import kafka.protocol.admin
    import kafka.protocol.metadata

    theirs = getattr(kafka.protocol.admin, name, None) or getattr(kafka.protocol.metadata, name)
    found = message(name)
    values = data.draw(st.composite(lambda draw: drawn(draw, found.layout.fields, version))())
    ours = found.encode(version, values)
    read = theirs.decode(ours, version=version)
    read.with_header()
    assert bytes(read.encode()) == ours


def test_a_uuid_is_text_as_kafka_writes_it() -> None:
    sample = made_of({"name": "Id", "type": "uuid"})
    data = uuid.UUID("a5b4c3d2-0001-4fff-8000-00000000002a").bytes
    text = uuid_text(data)
    assert len(text) == 22
    assert sample.encode(0, {"Id": text}) == data + b"\0"
    assert sample.decode(0, data + b"\0") == {"Id": text}
    assert uuid_bytes("AAAAAAAAAAAAAAAAAAAAAQ") == b"\0" * 15 + b"\1"
    for wrong in ("", "AAAAAAAAAAAAAAAAAAAAAR", "AAAAAAAAAAAAAAAAAAAA=Q", "é" * 22, None, data, []):
        with pytest.raises(MessageError, match=r"Id: .* is not a uuid"):
            sample.encode(0, {"Id": wrong})


def test_a_tagged_field_is_written_unless_it_has_its_default() -> None:
    inner = [{"name": "Epoch", "type": "int32", "versions": "0+", "default": "-1"}]
    tagged = {"taggedVersions": "0+"}
    sample = made_of(
        {"name": "Second", "type": "int32", "tag": 1, "default": "7"} | tagged,
        {"name": "First", "type": "Leader", "tag": 0, "fields": inner} | tagged,
    )
    assert sample.encode(0, {"Second": 7, "First": {"Epoch": -1}}) == b"\0"
    assert sample.encode(0, {"Second": 8, "First": {"Epoch": 2}}) == bytes.fromhex("02 00 05 0000000200 01 04 00000008")
    assert sample.decode(0, b"\0") == {"Second": 7, "First": {"Epoch": -1}}
    assert sample.decode(0, bytes.fromhex("01 09 02 ffff")) == {"Second": 7, "First": {"Epoch": -1}}
    with pytest.raises(MessageError, match="Sample v0: Second: a tagged field of 5 bytes has another length inside"):
        sample.decode(0, bytes.fromhex("01 01 05 0000000800"))


def test_a_field_that_the_version_lacks_is_refused_unless_ignorable() -> None:
    sample = made_of(
        {"name": "Old", "type": "int8"},
        {"name": "New", "type": "[]int8", "versions": "2+"},
        {"name": "Loose", "type": "string", "versions": "2+", "ignorable": True},
    )
    assert sample.encode(1, {"Old": 1, "New": (), "Loose": "gone"}) == b"\1\0"
    with pytest.raises(MessageError, match="Sample v1: New: this version cannot carry it"):
        sample.encode(1, {"New": [1]})
    assert sample.decode(1, b"\1\0") == {"Old": 1, "New": [], "Loose": ""}


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ({"type": "int8"}, 128, "F: 128 is not possible here"),
        ({"type": "int64"}, "1", "F: '1' is not possible here"),
        ({"type": "bool"}, 1, "F: a bool is needed, not 1"),
        ({"type": "string"}, None, "F: null is not allowed"),
        ({"type": "string"}, b"x", "F: a string is needed, not bytes"),
        ({"type": "string"}, "x" * 32_768, "F: a string of 32768 bytes"),
        ({"type": "bytes"}, "x", "F: bytes are needed, not str"),
        ({"type": "[]int8"}, None, "F: null is not allowed"),
        ({"type": "[]int8"}, 3, "F: an array is needed, not int"),
        ({"type": "[]int8"}, [1, 2, 999], r"F\[2\]: 999 is not possible"),
        (
            {"type": "[]S", "fields": [{"name": "G", "type": "int8", "versions": "0+"}]},
            [{}, {"H": 1}],
            r"F\[1\].H: there",
        ),
        (
            {"type": "S", "fields": [{"name": "G", "type": "int8", "versions": "0+"}]},
            1,
            "F: a struct is needed, not int",
        ),
    ],
)
def test_a_wrong_value_is_named(field: dict[str, Any], value: Any, said: str) -> None:
    with pytest.raises(MessageError, match=f"Sample v0: {said}"):
        made_of({"name": "F"} | field).encode(0, {"F": value})


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("string", "ffffffff0f", "F: 4294967294 bytes are needed and 0 are left"),
        ("string", "ffffffffff01", "F: a varint has more than 5 bytes"),
        ("string", "ff", "F: the bytes end within a varint"),
        ("string", "00", "F: null is not allowed"),
        ("string", "02ff00", "F: a string that is not UTF-8"),
        ("bytes", "0501", "F: 4 bytes are needed and 1 are left"),
        ("[]int64", "ffffffff0f", "F: an array of 4294967294 is announced and 0 bytes are left"),
        ("[]int8", "0301", "F: an array of 2 is announced and 1 bytes are left"),
        ("int8", "01ffffffff0f", "4294967295 tagged fields; the limit is 1000"),
        ("int8", "0101050501", "5 bytes are needed and 1 are left"),
    ],
)
def test_wrong_bytes_are_named_before_objects_are_built(kind: str, data: str, said: str) -> None:
    with pytest.raises(MessageError, match=f"^Sample v0: {said}"):
        made_of({"name": "F", "type": kind}).decode(0, bytes.fromhex(data))


def test_of_numbers_side_by_side_the_wrong_one_is_named() -> None:
    sample = made_of({"name": "A", "type": "int32"}, {"name": "B", "type": "int64"}, {"name": "C", "type": "int8"})
    assert sample.decode(0, sample.encode(0, {"A": -1, "C": 7})) == {"A": -1, "B": 0, "C": 7}
    with pytest.raises(MessageError, match="Sample v0: B: 'x' is not possible here"):
        sample.encode(0, {"A": 1, "B": "x"})
    with pytest.raises(MessageError, match="Sample v0: C: 300 is not possible here"):
        sample.encode(0, {"C": 300})
    for size, name in ((3, "A"), (11, "B"), (12, "C")):
        with pytest.raises(MessageError, match=f"Sample v0: {name}: . bytes are needed and . are left"):
            sample.decode(0, bytes(size))


def test_a_small_message_cannot_build_a_large_object() -> None:
    many = made_of({"name": "F", "type": "[]struct", "fields": [{"name": "G", "type": "[]int8", "versions": "0+"}]})
    # Empty structs of two bytes each.
    data = bytearray()
    write_uvarint(data, 10_000 + 1)
    data += b"\x01\x00" * 10_000
    limit = 100 * (len(data) + 1)
    with pytest.raises(MessageError, match=f"F: with an array of 10000 the message takes more than {limit} bytes"):
        many.decode(0, data + b"\x00")


def test_a_struct_that_was_encoded_before_is_put_into_messages() -> None:
    inner = [{"name": "Numbers", "type": "[]int32", "versions": "0+"}, {"name": "Text", "type": "string"}]
    inner = [{"versions": "0+"} | one for one in inner]
    middle = [{"name": "Parts", "type": "[]Part", "versions": "0+", "fields": inner}]
    for flexible in ("0+", "none"):
        sample = made_of({"name": "Groups", "type": "[]Group", "fields": middle}, flexible=flexible)
        values = {"Numbers": (1, 2), "Text": "x"}
        part = sample.encode_part(0, ("Groups", "Parts"), values)
        encoded = sample.encode(0, {"Groups": [{"Parts": [part, values]}, {"Parts": [part]}]})
        assert encoded == sample.encode(0, {"Groups": [{"Parts": [values, values]}, {"Parts": [values]}]})
        with pytest.raises(MessageError, match=r"Sample v0: Groups.Parts.Numbers\[1\]: 'a'"):
            sample.encode_part(0, ("Groups", "Parts"), {"Numbers": (1, "a"), "Text": "x"})


def test_a_version_that_a_message_does_not_have_is_refused() -> None:
    sample = made_of({"name": "F", "type": "int8"}, valid="2-3")
    for version in (1, 4, -1):
        with pytest.raises(MessageError, match=f"Sample: version {version} is not among 2 to 3"):
            sample.encode(version, {})


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ({"name": "F", "type": "int7"}, "Sample.F: 'int7' is neither a known type"),
        ({"name": "F", "type": "int8", "versions": "x"}, "'x' is not a range of versions"),
        ({"name": "F", "type": "int8", "tag": 1}, "Sample.F: a tag and its versions go together"),
        ({"name": "F", "type": "int8", "default": "zero"}, "Sample.F: a default of 'zero'"),
        ({"name": "F", "type": "[]int8", "default": "1"}, "Sample.F: a default of '1'"),
        ({"name": "F", "type": "int8", "color": 1}, "a layout that cannot be read: .*color"),
    ],
)
def test_an_inconsistent_layout_is_refused(field: dict[str, Any], said: str) -> None:
    with pytest.raises(LayoutError, match=said):
        made_of(field)
