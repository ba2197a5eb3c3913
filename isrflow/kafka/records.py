"""How events and decisions are written as records of Kafka topics."""

import struct
import zlib

import msgspec

DECISION_KEY = struct.Struct(">qq")
# A header of each record of decisions that names the decision before it, for readers that find that one removed.
PREVIOUS = "previous"


class Replica(msgspec.Struct, tag_field="kind", tag="log_end_offset"):
    """The replica whose log end an event reports."""

    topic: str
    partition: int
    broker: int

    @property
    def key(self) -> str:
        """The key of the report's record, because the topic keeps the newest report of each replica."""
        return f"{self._place}-{self.broker}"

    def partition_among(self, count: int) -> int:
        """Return the partition of the offsets topic. All reports on one partition are in the same, and in order."""
        return zlib.crc32(self._place.encode()) % count

    @property
    def _place(self) -> str:
        return f"{self.topic}-{self.partition}"


_replica = msgspec.json.Decoder(Replica)


def replica_of(raw: bytes) -> Replica | None:
    """Return the replica whose log end an event reports; None for other events, and for text that is not an event."""
    if b"log_end_offset" not in raw:
        return None
    try:
        return _replica.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
