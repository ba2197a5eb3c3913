"""The codec of a struct in one version, made of the codecs of its fields."""

from collections.abc import Callable
from typing import Any, NamedTuple

from brokers.wire.decoded_size import ARRAY, weight_of_plain, weight_of_struct
from brokers.wire.fields import Field, Values, in_order
from brokers.wire.layout import FIXED_SIZES, SIZED, STRUCT_DEFAULT, FieldLayout, Layout, LayoutError
from brokers.wire.plain import (
    FIXED,
    NUMBER_CODES,
    Fault,
    Plain,
    Reader,
    array_of,
    array_of_numbers,
    sized,
    write_uvarint,
)

TAGS_MAX = 1_000


class Encoded(bytes):
    """The bytes of a struct within a message, in the version of the message."""


class StructCodec:
    """The codec of one struct in one version; ``size_min`` is in bytes, and ``weight`` in bytes of memory.

    ``absent`` has the defaults of fields that the version does not carry. ``strict`` names the ones among
    them that may have no other value.
    """

    def __init__(
        self,
        fields: list[Field],
        absent: dict[str, Callable[[], Any]],
        strict: set[str],
        flexible: bool,
        size_min: int,
        weight: int,
    ) -> None:
        self.size_min = size_min
        self.weight = weight
        self._flexible = flexible
        self._untagged = [field for field in fields if field.tag is None]
        self._in_place = in_order(self._untagged)
        self._tagged = {one.tag: one for one in sorted(fields, key=lambda field: field.tag or 0) if one.tag is not None}
        self._absent = absent
        self._strict = strict
        self._names = {field.name for field in fields} | set(absent)
        self._defaulted = absent | {field.name: field.default for field in self._tagged.values()}

    def default(self) -> Values:
        """Return the struct with all its defaults."""
        return {one.name: one.default() for one in self._untagged} | {n: d() for n, d in self._defaulted.items()}

    def read(self, reader: Reader) -> Values:
        values: Values = {}
        for fields in self._in_place:
            fields.read(reader, values)
        for name, default in self._defaulted.items():
            values[name] = default()
        if self._flexible:
            # Most structs have no tagged fields.
            if reader.position < reader.end and reader.data[reader.position] == 0:
                reader.position += 1
            else:
                self._read_tags(reader, values)
        return values

    def _read_tags(self, reader: Reader, values: Values) -> None:
        count = reader.uvarint()
        if count > TAGS_MAX:
            raise Fault(f"{count} tagged fields; the limit is {TAGS_MAX}")
        for _ in range(count):
            tag, size = reader.uvarint(), reader.uvarint()
            field = self._tagged.get(tag)
            if field is None:
                reader.take(size)
                continue
            end = reader.position + size
            try:
                values[field.name] = field.plain.read(reader)
                if reader.position != end:
                    raise Fault(f"a tagged field of {size} bytes has another length inside")
            except Fault as fault:
                fault.within(field.name)
                raise

    def write(self, out: bytearray, values: Any) -> None:
        if type(values) is Encoded:
            out += values
            return
        if not isinstance(values, dict):
            raise Fault(f"a struct is needed, not {type(values).__name__}")
        if not values.keys() <= self._names:
            raise Fault("there is no such field", min(map(str, values.keys() - self._names)))
        if self._strict:
            for name in self._strict & values.keys():
                if _normal(values[name]) != _normal(self._absent[name]()):
                    raise Fault("this version cannot carry it", name)
        for fields in self._in_place:
            fields.write(out, values)
        if self._tagged:
            self._write_tags(out, values)
        elif self._flexible:
            out.append(0)

    def _write_tags(self, out: bytearray, values: Values) -> None:
        written: list[tuple[int, bytearray]] = []
        for tag, (name, plain, default, *_) in self._tagged.items():
            if name not in values:
                continue
            body, nothing = bytearray(), bytearray()
            try:
                plain.write(body, values[name])
                plain.write(nothing, default())
            except Fault as fault:
                fault.within(name)
                raise
            if body != nothing:
                written.append((tag, body))
        write_uvarint(out, len(written))
        for tag, body in written:
            write_uvarint(out, tag)
            write_uvarint(out, len(body))
            out += body


def _normal(value: Any) -> Any:
    """Make sequences comparable whatever their type."""
    if isinstance(value, dict):
        return {name: _normal(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_normal(inner) for inner in value]
    return value


def struct_codec(fields: tuple[FieldLayout, ...], version: int, flexible: bool) -> StructCodec:
    """Make the codec of a struct that has ``fields``. Raises ``LayoutError``."""
    carried: list[Field] = []
    absent: dict[str, Callable[[], Any]] = {}
    strict: set[str] = set()
    size, inside = int(flexible), 0
    for field in fields:
        one = _field(field, version, flexible)
        if version not in field.versions:
            absent[field.name] = one.default
            inside += ARRAY if field.array else 0
            if not field.ignorable:
                strict.add(field.name)
            continue
        tag = field.tag if version in field.tagged else None
        if tag is not None and not flexible:
            raise LayoutError(f"{field.name}: tagged in version {version}, which has no tagged fields")
        code = None if field.array else NUMBER_CODES.get(field.type)
        carried.append(Field(field.name, one.plain, one.default, tag, code))
        size += one.size_min if tag is None else 0
        inside += one.weight
    weight = weight_of_struct([field.name for field in fields], inside)
    return StructCodec(carried, absent, strict, flexible, max(size, 1), weight)


def codec_of_part(layout: Layout, version: int, path: tuple[str, ...]) -> Plain:
    """Return the codec of one struct at the end of ``path``."""
    fields, flexible = layout.fields, version in layout.flexible
    for name in path:
        field = next(one for one in fields if one.name == name)
        fields = field.fields
        flexible = flexible if field.flexible is None else version in field.flexible
    return _one(field, version, flexible, nullable=False).plain


class _Codec(NamedTuple):
    """The codec of a field, and the least that it takes: bytes in a message, and bytes of memory."""

    plain: Plain
    default: Callable[[], Any]
    size_min: int
    weight: int


def _field(field: FieldLayout, version: int, flexible: bool) -> _Codec:
    if field.flexible is not None:
        flexible = version in field.flexible
    nullable = version in field.nullable
    if field.array:
        one = _one(field, version, flexible, nullable=False)
        code, sizes = NUMBER_CODES.get(field.type), (one.size_min, one.weight, flexible, nullable)
        plain = array_of(one.plain, *sizes) if code is None else array_of_numbers(code, *sizes)
        return _Codec(plain, (lambda: None) if field.default is None else list, 1 if flexible else 4, ARRAY)
    return _one(field, version, flexible, nullable)


def _one(field: FieldLayout, version: int, flexible: bool, nullable: bool) -> _Codec:
    constant = field.default
    if field.type in FIXED_SIZES:
        size = FIXED_SIZES[field.type]
        return _Codec(FIXED[field.type], lambda: constant, size, weight_of_plain(field.type))
    if field.type in SIZED:
        size_min = 1 if flexible else (2 if field.type == "string" else 4)
        plain = sized(field.type, flexible=flexible, nullable=nullable)
        return _Codec(plain, lambda: constant, size_min, weight_of_plain(field.type))
    struct = struct_codec(field.fields, version, flexible)
    default = struct.default if constant == STRUCT_DEFAULT else lambda: None
    if nullable:
        return _Codec(_nullable(struct), default, 1, struct.weight)
    return _Codec(Plain(struct.read, struct.write), default, struct.size_min, struct.weight)


def _nullable(struct: StructCodec) -> Plain:
    """Return the codec of a struct that may be null: the byte before it tells whether it is there."""
    presence = FIXED["int8"]

    def read(reader: Reader) -> Values | None:
        return None if presence.read(reader) < 0 else struct.read(reader)

    def write(out: bytearray, value: Any) -> None:
        presence.write(out, -1 if value is None else 1)
        if value is not None:
            struct.write(out, value)

    return Plain(read, write)
