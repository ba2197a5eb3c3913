"""Texts that the decoder may meet: valid events, events with wild values, JSON trees, and any bytes."""

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from state.events import AnyEvent
from tests.support.random_events import TOPICS

BROKERS = (1, 2, 3)
KINDS = {kind.__struct_config__.tag: kind for kind in AnyEvent.__args__}
_EXTREMES = (-(2**70), -(2**63), -2, -1, 0, 1, 2**31 - 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 10**40)
_TEXTS = (
    "",
    "1",
    " 1",
    "1\n",
    "0\n",
    "1_0",
    "٣",
    "-0",
    "1.0",
    "true",
    "null",
    "\x00",
    "\ud800",
    "\u2028",
    "💥",
    "a" * 5_000,
)

_texts = st.sampled_from((*_TEXTS, *TOPICS)) | st.text(max_size=8)
_numbers = st.sampled_from(_EXTREMES) | st.integers(0, 5) | st.floats(allow_nan=True)
_scalars = st.none() | st.booleans() | _numbers | _texts
trees = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4), max_leaves=12
)
_depths = st.sampled_from((1, 90, 99, 101, 980, 995, 20_000))


def _of_type(info: msgspec.inspect.Type) -> st.SearchStrategy[Any]:
    match info:
        case msgspec.inspect.IntType():
            return st.integers(0, 4)
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.FloatType():
            return st.floats(0, 3)
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.LiteralType():
            return st.sampled_from(info.values)
        case msgspec.inspect.VarTupleType():
            return st.lists(_of_type(info.item_type), max_size=4)
        case msgspec.inspect.TupleType():
            return st.tuples(*map(_of_type, info.item_types))
        case msgspec.inspect.DictType():
            keys = st.sampled_from(
                ("0", "1", "2", "0\n", "٣", "01", "min.insync.replicas", "unclean.leader.election.enable", "x")
            )
            return st.dictionaries(keys, _of_type(info.value_type), max_size=3)
        case msgspec.inspect.UnionType():
            return st.one_of([_of_type(one) for one in info.types])
        case msgspec.inspect.StructType():
            return _struct(info)
        case msgspec.inspect.Metadata():
            return _of_type(info.type)
        case _:
            return _texts


_BY_NAME: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(TOPICS[:3]),
    "name": st.sampled_from((None, *TOPICS[:2], "1", "2", "01")),
    "broker": st.sampled_from(BROKERS),
    "gateway": st.sampled_from((100, 101)),
    "isr": st.lists(st.sampled_from(BROKERS), min_size=1, max_size=3),
    "replicas": st.none() | st.lists(st.sampled_from(BROKERS), max_size=3),
    "incarnation": st.sampled_from(("i1", "i2", "i3")),
    "partitions": st.none() | st.integers(-1, 4),
    "replication_factor": st.none() | st.integers(-1, 3),
}


def _field(kind: str, field: msgspec.inspect.Field) -> st.SearchStrategy[Any]:
    if kind == "elect_leaders" and field.name == "partitions":
        return _of_type(field.type)
    return _BY_NAME[field.encode_name] if field.encode_name in _BY_NAME else _of_type(field.type)


def _struct(info: msgspec.inspect.StructType, kind: str = "") -> st.SearchStrategy[dict[str, Any]]:
    required = {f.encode_name: _field(kind, f) for f in info.fields if f.required}
    optional = {f.encode_name: _field(kind, f) for f in info.fields if not f.required and f.encode_name != "request_id"}
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def _events(draw: st.DrawFn) -> dict[str, Any]:
    """Draw an event of some kind, and replace up to two of its fields with wild values."""
    kind = draw(st.sampled_from(sorted(KINDS)))
    info = msgspec.inspect.type_info(KINDS[kind])
    assert isinstance(info, msgspec.inspect.StructType)
    said: dict[str, Any] = {"kind": kind} | draw(_struct(info, kind))
    if draw(st.booleans()):
        said["request_id"] = draw(st.sampled_from(("q", 7, 10**40)))
    # Most wild values keep the field's type, because the decoder refuses the others.
    for field in draw(st.lists(st.sampled_from(sorted(said)), max_size=2, unique=True)):
        said[field] = draw(_like(said[field]) if draw(st.integers(0, 3)) else trees)
    return said


def _like(value: Any) -> st.SearchStrategy[Any]:
    """Draw a wild value of the same type."""
    match value:
        case bool():
            return st.booleans()
        case int():
            return st.sampled_from(_EXTREMES)
        case str():
            return _texts
        case [*some]:
            return st.permutations([*some, *some]) if some else trees
        case _:
            return st.none() | trees


def _text_of(said: dict[str, Any], escaped: bool) -> bytes:
    return json.dumps(said, ensure_ascii=escaped).encode("utf-8", "surrogatepass")


@st.composite
def _deep(draw: st.DrawFn) -> bytes:
    """Draw an event with a deeply nested value, in an unknown field or in a known one."""
    depth, field = draw(_depths), draw(st.sampled_from(("x", "time_ms", "isr", "request_id")))
    opening, closing = draw(st.sampled_from((("[", "]"), ('{"":', "}"), ("[", ""))))
    inner = '"x"' if draw(st.booleans()) else "1"
    return f'{{"kind":"tick","time_ms":1,"{field}":{opening * depth}{inner}{closing * depth}}}'.encode()


@st.composite
def _cut(draw: st.DrawFn) -> bytes:
    """Draw the text of an event with some bytes changed, cut off or doubled."""
    text = _text_of(draw(_events()), draw(st.booleans()))
    at = draw(st.integers(0, len(text)))
    return (
        text[:at] + draw(st.binary(max_size=4)) + text[draw(st.integers(0, len(text))) if draw(st.booleans()) else at :]
    )


texts = st.one_of(
    st.builds(_text_of, _events(), st.booleans()),
    st.builds(_text_of, _events(), st.booleans()),
    st.builds(_text_of, _events(), st.booleans()),
    st.builds(lambda tree: json.dumps(tree).encode(), trees),
    _deep(),
    _cut(),
    st.binary(max_size=40),
)
