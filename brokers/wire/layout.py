"""Message layouts in Kafka's schema dialect: the fields of a message in each version, and their types.

A layout is the JSON that Kafka's message generator reads, without its descriptions: ``name``, ``validVersions``,
``flexibleVersions``, ``commonStructs`` and ``fields``, each field with ``versions``, ``nullableVersions``,
``taggedVersions``, ``default`` and so on.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec

FIXED_SIZES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "uint32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}
SIZED = frozenset({"string", "bytes", "records"})
# Stands for the default of a struct, which is built from the struct's fields each time.
STRUCT_DEFAULT = "struct"
ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
DEPTH_MAX = 16
_VERSION_MAX = 32_767
_RANGE = re.compile(r"([0-9]+)(\+|-([0-9]+))?")


class LayoutError(ValueError):
    """A layout is not valid. The error names the message and the field."""


class Versions(NamedTuple):
    """A range of versions, both ends included. An empty range has ``high < low``."""

    low: int
    high: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high


NO_VERSIONS = Versions(0, -1)


def versions(text: str) -> Versions:
    """Read ``"3"``, ``"0-4"``, ``"2+"`` or ``"none"``. Raises ``LayoutError``."""
    if text == "none":
        return NO_VERSIONS
    match = _RANGE.fullmatch(text)
    if match is None:
        raise LayoutError(f"{text!r} is not a range of versions")
    low = int(match[1])
    return Versions(low, _VERSION_MAX if match[2] == "+" else int(match[3] or low))


class _Field(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    type: str
    versions: str
    nullable_versions: str = "none"
    tagged_versions: str = "none"
    tag: int | None = None
    flexible_versions: str | None = None
    default: str | int | bool | None = None
    ignorable: bool = False
    fields: list["_Field"] | None = None


class _Common(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    versions: str
    fields: list[_Field]


class _Message(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    name: str
    type: Literal["request", "response", "header", "data", "metadata"]
    valid_versions: str
    flexible_versions: str
    fields: list[_Field]
    api_key: int | None = None
    common_structs: list[_Common] = []


# Made at import: if several threads decode a struct for the first time at once, msgspec may end the process.
_message = msgspec.json.Decoder(_Message)


class FieldLayout(NamedTuple):
    """One field of a message."""

    name: str
    # A plain type's name, or ``struct``. For an array it is the type of the elements.
    type: str
    array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    # None: the field is flexible in the same versions as its message.
    flexible: Versions | None
    default: Any
    ignorable: bool
    fields: tuple["FieldLayout", ...]


class Layout(NamedTuple):
    """One message."""

    name: str
    kind: str
    api_key: int | None
    valid: Versions
    flexible: Versions
    fields: tuple[FieldLayout, ...]


def read_layout(data: bytes | str) -> Layout:
    """Read a layout from its JSON. Raises ``LayoutError``."""
    try:
        message = _message.decode(data)
    except msgspec.MsgspecError as error:
        raise LayoutError(f"a layout that cannot be read: {error}") from error
    common = {struct.name: struct.fields for struct in message.common_structs}
    return Layout(
        message.name,
        message.type,
        message.api_key,
        versions(message.valid_versions),
        versions(message.flexible_versions),
        _fields(message.fields, common, message.name, 0),
    )


def _fields(fields: list[_Field], common: Mapping[str, list[_Field]], path: str, depth: int) -> tuple[FieldLayout, ...]:
    if depth > DEPTH_MAX:
        raise LayoutError(f"{path}: structs more than {DEPTH_MAX} deep")
    return tuple(_field(field, common, f"{path}.{field.name}", depth) for field in fields)


def _field(field: _Field, common: Mapping[str, list[_Field]], path: str, depth: int) -> FieldLayout:
    array = field.type.startswith("[]")
    named = field.type.removeprefix("[]")
    plain = named in FIXED_SIZES or named in SIZED
    inner = field.fields if field.fields is not None else common.get(named)
    if plain == (inner is not None):
        raise LayoutError(f"{path}: {field.type!r} is neither a known type nor a struct with fields")
    tagged = versions(field.tagged_versions)
    if (field.tag is None) != (tagged == NO_VERSIONS):
        raise LayoutError(f"{path}: a tag and its versions go together")
    inside = _fields(inner, common, path, depth + 1) if inner is not None else ()
    kind = named if plain else "struct"
    return FieldLayout(
        field.name,
        kind,
        array,
        versions(field.versions),
        versions(field.nullable_versions),
        tagged,
        field.tag,
        None if field.flexible_versions is None else versions(field.flexible_versions),
        _default(field.default, kind, array, path),
        field.ignorable,
        inside,
    )


def _default(given: str | int | bool | None, kind: str, array: bool, path: str) -> Any:
    if given == "null":
        return None
    if array or kind in ("bytes", "records", "uuid", "struct"):
        if given not in (None, ""):
            raise LayoutError(f"{path}: a default of {given!r} is not possible for this type")
        return {"uuid": ZERO_UUID, "struct": STRUCT_DEFAULT}.get(kind, b"") if not array else ()
    try:
        return _plain_default(given, kind)
    except ValueError as error:
        raise LayoutError(f"{path}: a default of {given!r} is not possible for this type") from error


def _plain_default(given: str | int | bool | None, kind: str) -> Any:
    if kind == "string":
        return "" if given is None else str(given)
    if kind == "bool":
        return str(given).lower() == "true"
    if kind == "float64":
        return float(given or 0)
    return int(given, 0) if isinstance(given, str) and given else int(given or 0)
