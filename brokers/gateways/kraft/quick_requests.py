"""The requests that a gateway answers from what it knows, without asking the engine."""

from brokers.gateways.kraft.messages import message
from brokers.wire.plain import Fault, Reader
from brokers.wire.schema import MessageError

_ENVELOPE = 58
# DescribeAcls, DescribeConfigs, ListPartitionReassignments, DescribeQuorum, FetchSnapshot, DescribeCluster. ApiVersions
# and Fetch are too short to be counted, and a Fetch waits for news.
QUICK = frozenset({29, 32, 46, 55, 59, 60})


def is_quick(start: bytes) -> bool:
    """Return whether the request that begins with ``start`` is answered without the engine.

    A request whose header does not end there counts as one that asks the engine.
    """
    reader = Reader(start)
    try:
        key = _key(reader)
        if key != _ENVELOPE:
            return key in QUICK
        reader = Reader(start)
        message("RequestHeader").read(2, reader)
        reader.uvarint()
        return _key(reader) in QUICK
    except (Fault, MessageError):
        return False


def _key(reader: Reader) -> int:
    return int.from_bytes(reader.take(2), "big")
