"""The plain types of Kafka's messages, and arrays, as bytes in both directions. Every length is checked before use."""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

from brokers.wire.decoded_size import PLACE, decoded_bytes_max
from brokers.wire.layout import FIXED_SIZES
from state.ids import as_uuid, uuid_in

STRING_BYTES_MAX = 32_767
_UVARINT_BYTES_MAX = 5
_SHORT_ARRAY = 8


class Fault(Exception):
    """A value or some bytes are wrong. ``path`` becomes the full field name as the error goes up the call stack."""

    def __init__(self, what: str, *path: str) -> None:
        super().__init__(what)
        self.what = what
        self.path = list(path)

    def within(self, name: str) -> None:
        """Add the name of the field or element that contains the fault."""
        self.path.insert(0, name)


class Reader:
    """A position in some bytes. Bytes after ``end`` are never read.

    ``room`` is how many bytes of memory further array elements may take, so that a small message cannot build a large
    object.
    """

    def __init__(self, data: bytes | bytearray | memoryview) -> None:
        self.data = memoryview(data)
        self.position = 0
        self.end = len(self.data)
        self.room = decoded_bytes_max(self.end)

    @property
    def left(self) -> int:
        return self.end - self.position

    def take(self, size: int) -> memoryview:
        """Return the next ``size`` bytes. Raises ``Fault`` if fewer are left."""
        if size < 0 or size > self.end - self.position:
            raise Fault(f"{size} bytes are needed and {self.left} are left")
        start = self.position
        self.position = start + size
        return self.data[start : self.position]

    def uvarint(self) -> int:
        """Read an unsigned varint of at most five bytes."""
        if self.position < self.end and self.data[self.position] < 0x80:
            self.position += 1
            return self.data[self.position - 1]
        value = 0
        for shift in range(0, 7 * _UVARINT_BYTES_MAX, 7):
            if self.position >= self.end:
                raise Fault("the bytes end within a varint")
            byte = self.data[self.position]
            self.position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise Fault(f"a varint has more than {_UVARINT_BYTES_MAX} bytes")

    def count_elements(self, count: int, size_min: int, weight: int) -> None:
        """Refuse an array that cannot fit into the bytes that are left, or takes more memory than the message may."""
        if count * size_min > self.left:
            raise Fault(f"an array of {count} is announced and {self.left} bytes are left")
        self.room -= count * (weight + PLACE)
        if self.room < 0:
            limit = decoded_bytes_max(len(self.data))
            raise Fault(f"with an array of {count} the message takes more than {limit} bytes of memory")


def write_uvarint(out: bytearray, value: int) -> None:
    """Append an unsigned varint."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


class Plain(NamedTuple):
    """The codec of one type."""

    read: Callable[[Reader], Any]
    write: Callable[[bytearray, Any], None]


def sized(kind: str, *, flexible: bool, nullable: bool) -> Plain:
    """Return the codec of ``string``, ``bytes`` or ``records``."""
    length = compact_length if flexible else (classic_length if kind != "string" else _short_length)
    to_value, to_bytes = (_text, _text_bytes) if kind == "string" else (bytes, _raw_bytes)

    def read(reader: Reader) -> Any:
        size = length.read(reader)
        if size < 0:
            if nullable:
                return None
            raise Fault("null is not allowed")
        return to_value(reader.take(size))

    def write(out: bytearray, value: Any) -> None:
        if value is None:
            if not nullable:
                raise Fault("null is not allowed")
            length.write(out, -1)
            return
        data = to_bytes(value)
        length.write(out, len(data))
        out += data

    return Plain(read, write)


def array_of(one: Plain, size_min: int, weight: int, flexible: bool, nullable: bool) -> Plain:
    """Return the codec of an array whose elements take at least ``size_min`` bytes each, and ``weight`` in memory."""
    length = compact_length if flexible else classic_length

    def read(reader: Reader) -> list[Any] | None:
        count = length.read(reader)
        if count < 0:
            if nullable:
                return None
            raise Fault("null is not allowed")
        reader.count_elements(count, size_min, weight)
        values: list[Any] = []
        try:
            for _ in range(count):
                values.append(one.read(reader))
        except Fault as fault:
            fault.within(f"[{len(values)}]")
            raise
        return values

    def write(out: bytearray, values: Any) -> None:
        if values is None:
            if not nullable:
                raise Fault("null is not allowed")
            length.write(out, -1)
            return
        if not isinstance(values, list | tuple):
            raise Fault(f"an array is needed, not {type(values).__name__}")
        length.write(out, len(values))
        written = 0
        try:
            for value in values:
                one.write(out, value)
                written += 1
        except Fault as fault:
            fault.within(f"[{written}]")
            raise

    return Plain(read, write)


def array_of_numbers(code: str, size: int, weight: int, flexible: bool, nullable: bool) -> Plain:
    """Return the codec of an array of numbers, which takes all of them by one call.

    ``code`` is the letter of such a number in a format of ``struct``, and ``size`` its bytes.
    """
    length = compact_length if flexible else classic_length
    one_by_one = array_of(_number(code), size, weight, flexible, nullable)
    # Of the lengths that lists of replicas have.
    packings = [struct.Struct(f">{count}{code}") for count in range(_SHORT_ARRAY)]

    def read(reader: Reader) -> list[Any] | None:
        start = reader.position
        count = length.read(reader)
        if count < 0:
            reader.position = start
            return one_by_one.read(reader)  # type: ignore[no-any-return]
        reader.count_elements(count, size, weight)
        start = reader.position
        reader.position += count * size
        packing = packings[count] if count < _SHORT_ARRAY else struct.Struct(f">{count}{code}")
        return list(packing.unpack_from(reader.data, start))

    def write(out: bytearray, values: Any) -> None:
        try:
            packed = struct.pack(f">{len(values)}{code}", *values) if isinstance(values, list | tuple) else None
        except struct.error:
            packed = None
        if packed is None:
            # One by one, to name the element at fault.
            one_by_one.write(out, values)
            return
        length.write(out, len(values))
        out += packed

    return Plain(read, write)


def _text(data: memoryview) -> str:
    if len(data) > STRING_BYTES_MAX:
        raise Fault(f"a string of {len(data)} bytes; the limit is {STRING_BYTES_MAX}")
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise Fault("a string that is not UTF-8") from error


def _text_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise Fault(f"a string is needed, not {type(value).__name__}")
    try:
        data = value.encode()
    except UnicodeEncodeError as error:
        raise Fault("a string that is not Unicode text") from error
    if len(data) > STRING_BYTES_MAX:
        raise Fault(f"a string of {len(data)} bytes; the limit is {STRING_BYTES_MAX}")
    return data


def _raw_bytes(value: Any) -> Any:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise Fault(f"bytes are needed, not {type(value).__name__}")
    return value


def _number(code: str) -> Plain:
    packing = struct.Struct(f">{code}")

    def read(reader: Reader) -> Any:
        return packing.unpack(reader.take(packing.size))[0]

    def write(out: bytearray, value: Any) -> None:
        try:
            out += packing.pack(value)
        except struct.error as error:
            raise Fault(f"{value!r:.40} is not possible here: {error}") from error

    return Plain(read, write)


def _bool() -> Plain:
    def read(reader: Reader) -> bool:
        return reader.take(1)[0] != 0

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, bool):
            raise Fault(f"a bool is needed, not {value!r:.40}")
        out.append(value)

    return Plain(read, write)


# Cached because the same few topics and directories appear again and again.
uuid_text = lru_cache(4_096)(as_uuid)


@lru_cache(4_096)
def uuid_bytes(text: str) -> bytes:
    """Return the 16 bytes of a uuid from its text. Raises ``Fault``."""
    data = uuid_in(text)
    if data is None:
        raise Fault(f"{text!r:.40} is not a uuid in base64")
    return data


def _uuid() -> Plain:
    def read(reader: Reader) -> str:
        return uuid_text(bytes(reader.take(16)))

    def write(out: bytearray, value: Any) -> None:
        if not isinstance(value, str):
            raise Fault(f"{value!r:.40} is not a uuid in base64")
        out += uuid_bytes(value)

    return Plain(read, write)


compact_length = Plain(lambda reader: reader.uvarint() - 1, lambda out, length: write_uvarint(out, length + 1))
classic_length = _number("i")
_short_length = _number("h")

# The letters that stand for numbers in a format of ``struct``.
NUMBER_CODES = {"int8": "b", "int16": "h", "uint16": "H", "int32": "i", "uint32": "I", "int64": "q", "float64": "d"}
# The codecs of the types of fixed size.
FIXED = {kind: _number(code) for kind, code in NUMBER_CODES.items()} | {"bool": _bool(), "uuid": _uuid()}
assert FIXED.keys() == FIXED_SIZES.keys()
