"""Metadata records in the frame of the metadata log: frame version, key and version, then the message.

The bytes are the value of a log record, and a pure function of the arguments.
"""

from functools import cache
from typing import NamedTuple

from brokers.wire.catalogue import Catalogue
from brokers.wire.plain import Fault, Reader, write_uvarint
from brokers.wire.schema import MessageError, Values

FRAME_VERSION = 1
CATALOGUE = Catalogue("brokers.wire.metadata")


class Record(NamedTuple):
    """A metadata record; ``name`` is the schema's (``PartitionRecord``)."""

    name: str
    version: int
    values: Values


@cache
def _names() -> dict[int, str]:
    return {
        found.api_key: found.name
        for found in CATALOGUE.layouts.values()
        if found.kind == "metadata" and found.api_key is not None
    }


def encode_record(name: str, version: int, values: Values) -> bytes:
    """Write one framed record. Raises ``MessageError``."""
    found = CATALOGUE.message(name)
    if found.layout.kind != "metadata" or found.layout.api_key is None:
        raise MessageError(f"{name} is not a metadata record")
    out = bytearray()
    for number in (FRAME_VERSION, found.layout.api_key, version):
        write_uvarint(out, number)
    return bytes(out) + found.encode(version, values)


def decode_record(data: bytes | memoryview) -> Record:
    """Read one framed record that makes up all of ``data``. Raises ``MessageError``."""
    reader = Reader(data)
    try:
        frame_version, key, version = reader.uvarint(), reader.uvarint(), reader.uvarint()
    except Fault as fault:
        raise MessageError(f"the frame of a metadata record: {fault.what}") from fault
    if frame_version != FRAME_VERSION:
        raise MessageError(f"a metadata record in a frame of version {frame_version}, not {FRAME_VERSION}")
    name = _names().get(key)
    if name is None:
        raise MessageError(f"metadata record {key} has no layout here")
    return Record(name, version, CATALOGUE.message(name).read_last(version, reader))
