"""The weight of an event in a micro-batch: its own bytes, and an estimate of those of its decisions."""

import sqlite3

import msgspec

from isrflow.sqlite.deferrable import row_of

# What a created partition adds: its decision, its share of the answer, and its place in the state.
PARTITION_BYTES = 512
# The shortest form of a partition in an assignment is "0":[1],
_ASSIGNED_BYTES_MIN = 8
_CREATING = ("create_topic", "create_partitions")
_EVENTS = "SELECT seq, length(raw) AS size, {} AS creating FROM events WHERE seq > ? ORDER BY seq LIMIT ?"


class _Creating(msgspec.Struct):
    partitions: msgspec.Raw = msgspec.Raw(b"")
    total: msgspec.Raw = msgspec.Raw(b"")
    assignment: msgspec.Raw = msgspec.Raw(b"")


_creating = msgspec.json.Decoder(_Creating)


def last_within(connection: sqlite3.Connection, after: int, count: int, bytes_max: int) -> int:
    """Return the seq of the last of up to ``count`` events after ``after`` that weigh at most ``bytes_max``.

    The first event always fits. Returns ``after`` if there is no event.
    """
    parameters = (*_CREATING, after, count)
    summed = f"SELECT max(seq), sum(size), max(creating) FROM ({_EVENTS.format('kind IN (?, ?)')})"
    last, size, creates = connection.execute(summed, parameters).fetchone()
    if last is None or (size <= bytes_max and not creates):
        return after if last is None else int(last)
    last, total = None, 0
    for seq, size, creating in connection.execute(_EVENTS.format("CASE WHEN kind IN (?, ?) THEN raw END"), parameters):
        total += size + (partitions_named(creating) * PARTITION_BYTES if creating else 0)
        if last is not None and total > bytes_max:
            break
        last = seq
    return int(last)


def weight_of(raw: bytes) -> int:
    """Return the weight of an event from its text."""
    kind, _, _ = row_of(raw)
    return len(raw) + (partitions_named(raw) * PARTITION_BYTES if kind in _CREATING else 0)


def partitions_named(raw: bytes) -> int:
    """Return the most partitions that an event may create, from its text alone; 0 if it is not an event."""
    try:
        decoded = _creating.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return 0
    return max(
        _number(decoded.partitions), _number(decoded.total), len(bytes(decoded.assignment)) // _ASSIGNED_BYTES_MIN
    )


def _number(text: msgspec.Raw) -> int:
    digits = bytes(text)
    # The rules refuse longer numbers, so they create nothing.
    return int(digits) if digits.isdigit() and len(digits) < 10 else 0
