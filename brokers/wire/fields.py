"""The fields of a struct in their order. Numbers that follow each other are read and written together.

The elements of long arrays are mostly numbers: a row of an AlterPartition request has five, and two more for each
member of the ISR. Taking them one by one costs more than everything else about the row. So neighbours are one call of
``struct``. If that call fails, the same fields are taken one by one, because that names the field at fault.
"""

import struct
from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any, NamedTuple

from brokers.wire.plain import Fault, Plain, Reader

Values = dict[str, Any]


class Field(NamedTuple):
    """The codec of one field in one version."""

    name: str
    plain: Plain
    default: Callable[[], Any]
    # None for a field without a tag.
    tag: int | None
    # The field's letter in a format of ``struct``; None if it is not a number.
    code: str | None


class Fields(NamedTuple):
    """The codec of neighbouring fields of a struct."""

    read: Callable[[Reader, Values], None]
    write: Callable[[bytearray, Values], None]


def in_order(fields: Iterable[Field]) -> list[Fields]:
    """Divide fields without tags into numbers that follow each other and all others, in their order."""
    parts: list[Fields] = []
    for is_number, some in groupby(fields, lambda field: field.code is not None):
        group = list(some)
        parts += [_together(group)] if is_number and len(group) > 1 else map(_alone, group)
    return parts


def _alone(field: Field) -> Fields:
    name, plain, default = field.name, field.plain, field.default

    def read(reader: Reader, values: Values) -> None:
        try:
            values[name] = plain.read(reader)
        except Fault as fault:
            fault.within(name)
            raise

    def write(out: bytearray, values: Values) -> None:
        try:
            plain.write(out, values[name] if name in values else default())
        except Fault as fault:
            fault.within(name)
            raise

    return Fields(read, write)


def _together(fields: list[Field]) -> Fields:
    packing = struct.Struct(">" + "".join(str(field.code) for field in fields))
    size, names = packing.size, [field.name for field in fields]
    defaults = [field.default() for field in fields]
    one_by_one = [_alone(field) for field in fields]

    def read(reader: Reader, values: Values) -> None:
        position = reader.position
        if position + size > reader.end:
            for one in one_by_one:
                one.read(reader, values)
            return
        reader.position = position + size
        values.update(zip(names, packing.unpack_from(reader.data, position)))  # noqa: B905 (as many by construction)

    def write(out: bytearray, values: Values) -> None:
        try:
            out += packing.pack(*map(values.get, names, defaults))
        except struct.error:
            for one in one_by_one:
                one.write(out, values)

    return Fields(read, write)
