"""The contract in tables, made from the types and from the comments beside their fields."""

import ast
import functools
import inspect
import operator
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import UNSET, UnsetType
from msgspec import inspect as types

from isrflow.contract import ENGINE_KINDS
from state import acl, adoption_events, observed_events, registration, topic_events
from state.decisions import AnyDecision, Decision, PartitionResult
from state.event import AdminEvent
from state.events import AnyEvent, Event, TopicPartition
from tests.support.contract_notes import FIELDS

RULES = Path(__file__).parents[2] / "controller_logic"
# From this number on, fields that are alike are explained once.
SEVERAL = 2
_PARTS = (
    registration.Listener,
    registration.Feature,
    acl.Acl,
    acl.AclWithId,
    acl.AclFilter,
    adoption_events.FoundPartition,
    topic_events.TopicIsrs,
    topic_events.IsrRow,
    topic_events.TopicLogEnds,
    topic_events.LogEndRow,
    topic_events.TopicReports,
    topic_events.ReportRow,
    observed_events.Evidence,
    observed_events.Results,
    observed_events.ObservedBroker,
    observed_events.ObservedTopic,
    observed_events.ObservedPartition,
    observed_events.ObservedSetting,
    observed_events.ObservedFeature,
    observed_events.ObservedController,
    observed_events.CountedRecords,
)
# The fields of a filter of ACLs that take other values than those of an ACL.
_OF_FILTERS = {"resource_name", "pattern_type"}
_SCALAR = "text or integer or number or boolean"
_POWERS = {2**31 - 1: "2^31-1", 2**63 - 1: "2^63-1", 2**53: "2^53"}
# In the rules' text, but no error of an answer: a type of resource, what a broker reports, and states.
NO_ERRORS = {"CLUSTER", "KAFKA_STORAGE_ERROR", "RECOVERED", "RECOVERING"}
# A name, a type and a meaning.
Row = tuple[str, str, str]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |" for line in lines)


def events() -> str:
    """Describe every event: its kind, what it means, and its fields."""
    shared = {field.name for field in msgspec.structs.fields(Event)}
    common = _common_of_events()
    parts = ["### Every event", "", _list(_marked(_rows(Event, set())))]
    parts += ["", "### Every request of an admin", "", _list(_marked(_rows(AdminEvent, shared)))]
    parts += ["", "### Fields of several events", "", _list(sorted(common))]
    for kind in AnyEvent.__args__:
        of_admin = (
            {field.name for field in msgspec.structs.fields(AdminEvent)} if issubclass(kind, AdminEvent) else set()
        )
        parts += _kind(kind, shared | of_admin, common, _mark(kind))
    return "\n".join(parts)


def decisions() -> str:
    """Describe every decision in the canonical order."""
    shared = {field.name for field in msgspec.structs.fields(Decision)}
    common = _common((*AnyDecision.__args__, PartitionResult), shared)
    parts = ["### Every decision", "", _list(_marked(_rows(Decision, set())))]
    parts += ["", "### Fields of several decisions", "", _list(sorted(common))]
    for kind in AnyDecision.__args__:
        parts += _kind(kind, shared, common, "")
    return "\n".join(parts)


def named_values() -> str:
    """Describe the structs that events and decisions contain."""
    parts: list[str] = []
    common = _common_of_events()
    for struct in (*_PARTS, TopicPartition):
        inherited = next((base for base in struct.__mro__[1:] if base in _PARTS), None)
        shared = {field.name for field in msgspec.structs.fields(inherited)} if inherited else set()
        note = f"It has the fields of {inherited.__name__} too." if inherited else ""
        if struct is acl.AclFilter:
            shared = {field.name for field in msgspec.structs.fields(acl.Acl)} - _OF_FILTERS
            note = "Its fields are those of Acl. Of these, two take other values:"
        parts += _kind(struct, shared, common, note)
    shared = {field.name for field in msgspec.structs.fields(Decision)}
    parts += _kind(PartitionResult, set(), _common((*AnyDecision.__args__, PartitionResult), shared), "")
    return "\n".join(parts).lstrip("\n")


def word_rows(words: type[StrEnum]) -> list[tuple[str, str]]:
    """Return every word of a fixed vocabulary with its meaning."""
    comments = _comments(words)
    return [(f"`{word.value}`", comments.get(word.name, "")) for word in words]


def error_names() -> set[str]:
    """Return the errors that answers of the rules carry, from the rules' text."""
    words = {
        node.value
        for path in RULES.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"[A-Z][A-Z_]+", node.value)
    }
    return words - NO_ERRORS


def page(marks: dict[str, str], text: str) -> str:
    """Return ``text`` with each marked part replaced."""
    for mark, part in marks.items():
        begin, end = f"<!-- {mark} -->\n", f"\n<!-- end of {mark} -->"
        head, rest = text.split(begin)
        text = f"{head}{begin}{part}{end}{rest.split(end)[1]}"
    return text


def _mark(kind: Any) -> str:
    return "Only the engine makes it." if kind.__struct_config__.tag in ENGINE_KINDS else ""


def _kind(struct: Any, shared: set[str], common: set[Row], mark: str) -> list[str]:
    title = f"`{struct.__struct_config__.tag}`" if struct.__struct_config__.tag else struct.__name__
    about = " ".join(inspect.cleandoc(struct.__doc__ or "").split()).replace("``", "`")
    rows = _rows(struct, shared)
    of_several = [
        f"`{name}{'?' if is_optional else ''}`" for name, is_optional, *told in rows if (name, *told) in common
    ]
    own = _list(_marked(row for row in rows if (row[0], *row[2:]) not in common))
    several = f"Of several: {', '.join(of_several)}." if of_several else ""
    text = " ".join(filter(None, [about, mark, several]))
    return ["", f"### {title}", "", text, *(["", own] if own else [])]


def _common_of_events() -> set[Row]:
    shared = {field.name for field in msgspec.structs.fields(AdminEvent)}
    parts = [part for part in _PARTS if part is not acl.AclWithId]
    return _common((*AnyEvent.__args__, *parts, TopicPartition), shared)


def _common(structs: Iterable[Any], shared: set[str]) -> set[Row]:
    """Return the fields that several structs share in type and meaning: the most frequent of each name."""
    found = Counter((name, *told) for struct in structs for name, _, *told in _rows(struct, shared))
    most = {row[0]: row for row, count in reversed(found.most_common()) if count >= SEVERAL}
    return set(most.values())


def _list(rows: Iterable[Row]) -> str:
    return "\n".join(f"* `{name}`: {type_}. {told}" for name, type_, told in rows)


def _marked(rows: Iterable[Any]) -> list[Row]:
    return [(f"{name}{'?' if is_optional else ''}", type_, told) for name, is_optional, type_, told in rows]


def _rows(struct: Any, shared: set[str]) -> list[Any]:
    """Return each field's name, whether it may be missing, its type and its meaning."""
    rows = []
    kind = struct.__struct_config__.tag or struct.__name__
    for field in msgspec.structs.fields(struct):
        if field.name in shared:
            continue
        comment = next((found for base in struct.__mro__ if (found := _comments(base).get(field.name))), None)
        comment = FIELDS.get(f"{kind}.{field.name}") or comment or FIELDS.get(field.name, "")
        type_ = in_words(field.type) + _default(field)
        rows.append((field.encode_name, not field.required, type_, comment.replace("``", "`")))
    return rows


def _default(field: Any) -> str:
    """Return the default of a missing field, unless it is empty."""
    if field.required:
        return ""
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return "" if value is UNSET or not value else f", else `{msgspec.json.encode(value).decode()}`"


@cache
def _comments(cls: Any) -> dict[str, str]:
    """Return the comment above each field of a class."""
    try:
        lines = inspect.getsource(cls).splitlines()
    except (OSError, TypeError):
        return {}
    found: dict[str, str] = {}
    waiting: list[str] = []
    for line in lines:
        text = line.strip()
        named = re.match(r"(\w+)(: | = )", text)
        if text.startswith("# "):
            waiting.append(text[2:])
            continue
        if named and waiting:
            found[named[1]] = " ".join(waiting)
        waiting = []
    return found


def in_words(type_: Any) -> str:
    """Describe a type with its limits."""
    left = [one for one in get_args(type_) if one is not UnsetType]
    if UnsetType in get_args(type_):
        type_ = functools.reduce(operator.or_, left)
    return _words(types.type_info(type_))


def _words(info: Any) -> str:
    match info:
        case types.IntType():
            return f"integer{_range(info)}"
        case types.StrType(pattern=str(pattern)):
            return f"text that matches `{pattern}`"
        case types.StrType():
            return f"text{_length(info)}"
        case types.LiteralType():
            return ", ".join(f"`{msgspec.json.encode(value).decode()}`" for value in info.values)
        case types.VarTupleType() | types.ListType():
            return f"list{_length(info)} of {_words(info.item_type)}"
        case types.TupleType():
            return f"[{', '.join(_words(item) for item in info.item_types)}]"
        case types.DictType():
            values = _words(info.value_type)
            values = f"({values})" if " or " in values else values
            return f"object{_length(info)} from {_words(info.key_type)} to {values}"
        case types.UnionType():
            words = " or ".join(dict.fromkeys(_words(one) for one in info.types))
            return words.replace(_SCALAR, "scalar")
        case types.StructType() | types.EnumType():
            return str(info.cls.__name__)
        case types.Metadata():
            description = (info.extra_json_schema or {}).get("description")
            return str(description) if description else _words(info.type)
    return {types.BoolType: "boolean", types.NoneType: "null", types.FloatType: "number"}[type(info)]


def _range(info: Any) -> str:
    low, high = ("" if one is None else _POWERS.get(one, f"{one:,}") for one in (info.ge, info.le))
    if low and high:
        return f" {low}…{high}"
    return f" ≥{low}" if low else f" ≤{high}" if high else ""


def _length(info: Any) -> str:
    if not info.max_length:
        return ""
    return f" {info.min_length}…{info.max_length:,}" if info.min_length else f" ≤{info.max_length:,}"
