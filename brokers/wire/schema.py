"""Encode and decode messages by their layouts.

``Message(read_layout(json))`` has ``encode(version, values) -> bytes`` and ``decode(version, data) -> values``. Values
are dicts with the schemas' own field names (``BrokerEpoch``):

* a uuid is a ``str``: Kafka's URL-safe base64 without padding, 22 characters;
* arrays are lists (tuples too when encoding), structs are dicts, bytes and records are ``bytes``;
* a struct that is the same in many messages may be given as ``Encoded`` (``Message.encode_part``);
* a field that is left out has the schema's default when encoding. Decoding returns every field of the schema; those
  that the version does not carry have their defaults.

Encoding refuses unknown names, values of a wrong type or range, null where it is not allowed, and values that the
version cannot carry, unless the schema calls the field ignorable or the value is its default. Decoding checks each
length against the bytes that are left before it builds anything, and refuses bytes that are left over. Both raise
``MessageError``, which names the message, its version and the field: ``BrokerHeartbeatRequest v1: BrokerEpoch: 8 bytes
are needed and 3 are left``.
"""

from brokers.wire.fields import Values as Values
from brokers.wire.layout import Layout
from brokers.wire.messages import WireError
from brokers.wire.plain import Fault, Plain, Reader
from brokers.wire.struct_codec import Encoded as Encoded
from brokers.wire.struct_codec import StructCodec, codec_of_part, struct_codec


class MessageError(WireError):
    """Bytes or values do not fit their layout; the text names the message and the field."""


class Message:
    """One message in all its versions."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._structs: dict[int, StructCodec] = {}
        self._parts: dict[tuple[int, tuple[str, ...]], Plain] = {}

    @property
    def name(self) -> str:
        return self.layout.name

    def flexible(self, version: int) -> bool:
        """Return whether the version has compact lengths and tagged fields."""
        return version in self.layout.flexible

    def encode(self, version: int, values: Values) -> bytes:
        """Write ``values``. Raises ``MessageError``."""
        out = bytearray()
        try:
            self._struct(version).write(out, values)
        except Fault as fault:
            raise self._error(version, fault) from fault
        return bytes(out)

    def encode_part(self, version: int, path: tuple[str, ...], values: Values) -> Encoded:
        """Write one struct of a message; ``path`` names the fields that lead to it. Raises ``MessageError``."""
        found = self._parts.get((version, path))
        if found is None:
            found = self._parts[version, path] = codec_of_part(self.layout, version, path)
        out = bytearray()
        try:
            found.write(out, values)
        except Fault as fault:
            for name in reversed(path):
                fault.within(name)
            raise self._error(version, fault) from fault
        return Encoded(out)

    def decode(self, version: int, data: bytes | bytearray | memoryview) -> Values:
        """Read a message that makes up all of ``data``. Raises ``MessageError``."""
        return self.read_last(version, Reader(data))

    def read_last(self, version: int, reader: Reader) -> Values:
        """Read a message that makes up all bytes that are left. Raises ``MessageError``."""
        values = self.read(version, reader)
        if reader.left:
            raise MessageError(f"{self.name} v{version}: {reader.left} bytes are left over")
        return values

    def read(self, version: int, reader: Reader) -> Values:
        """Read a message that other bytes may follow. Raises ``MessageError``."""
        try:
            return self._struct(version).read(reader)
        except Fault as fault:
            raise self._error(version, fault) from fault

    def _struct(self, version: int) -> StructCodec:
        found = self._structs.get(version)
        if found is None:
            valid = self.layout.valid
            if version not in valid:
                raise MessageError(f"{self.name}: version {version} is not among {valid.low} to {valid.high}")
            found = self._structs[version] = struct_codec(self.layout.fields, version, self.flexible(version))
        return found

    def _error(self, version: int, fault: Fault) -> MessageError:
        path = ".".join(fault.path).replace(".[", "[")
        return MessageError(f"{self.name} v{version}: {path + ': ' if path else ''}{fault.what}")
