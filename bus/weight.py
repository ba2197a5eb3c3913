"""The weight of an event in a micro-batch: its own bytes, and an estimate of those of its decisions."""

import sqlite3

import msgspec

from isrflow.sqlite.deferrable import row_of

# What a created or changed partition adds: its decision, its share of the answer, and its place in the state.
PARTITION_BYTES = 512
# The shortest form of a partition in an assignment is "0":[1],
_ASSIGNED_BYTES_MIN = 8
# The decoded row of a report, which adds to the row's text.
REPORT_BYTES = 64
# Reports about many replicas. Few rows of such an event lead to a decision.
_REPORTS = ("log_end_offsets", "replica_reports")
# Each of these events may be about many partitions.
_OF_MANY = ("create_topic", "create_partitions", "alter_isrs", *_REPORTS)
_IS_OF_MANY = f"kind IN ({', '.join('?' * len(_OF_MANY))})"
_EVENTS = "SELECT seq, length(raw) AS size, kind, {} AS many FROM events WHERE seq > ? ORDER BY seq LIMIT ?"


class _Many(msgspec.Struct):
    partitions: msgspec.Raw = msgspec.Raw(b"")
    total: msgspec.Raw = msgspec.Raw(b"")
    assignment: msgspec.Raw = msgspec.Raw(b"")
    topics: msgspec.Raw = msgspec.Raw(b"")


class _Rows(msgspec.Struct):
    partitions: list[msgspec.Raw]


_many = msgspec.json.Decoder(_Many)
_topics = msgspec.json.Decoder(list[_Rows])


def last_within(connection: sqlite3.Connection, after: int, count: int, bytes_max: int) -> int:
    """Return the seq of the last of up to ``count`` events after ``after`` that weigh at most ``bytes_max``.

    The first event always fits. Returns ``after`` if there is no event.
    """
    parameters = (*_OF_MANY, after, count)
    summed = f"SELECT max(seq), sum(size), max(many) FROM ({_EVENTS.format(_IS_OF_MANY)})"
    last, size, is_heavy = connection.execute(summed, parameters).fetchone()
    if last is None or (size <= bytes_max and not is_heavy):
        return after if last is None else int(last)
    last, total = None, 0
    rows = connection.execute(_EVENTS.format(f"CASE WHEN {_IS_OF_MANY} THEN raw END"), parameters)
    for seq, size, kind, many in rows:
        total += size + (_weight_of_many(kind, many) if many else 0)
        if last is not None and total > bytes_max:
            break
        last = seq
    return int(last)


def weight_of(raw: bytes) -> int:
    """Return the weight of an event from its text."""
    kind, _, _ = row_of(raw)
    return len(raw) + (_weight_of_many(kind, raw) if kind in _OF_MANY else 0)


def _weight_of_many(kind: str | None, raw: bytes) -> int:
    if kind in _REPORTS:
        # A bracket begins a row or a list, and a brace an object with a list. Each list has a row at least, so half of
        # the brackets are rows. To read the text of half a million rows would take 30 ms.
        brackets = raw.count(b"[")
        return max(brackets - raw.count(b"{"), brackets // 2) * REPORT_BYTES
    return partitions_named(raw) * PARTITION_BYTES


def partitions_named(raw: bytes) -> int:
    """Return the most partitions that an event may create or change, from its text alone; 0 if it is not an event."""
    try:
        decoded = _many.decode(raw)
        rows = _topics.decode(decoded.topics) if decoded.topics else []
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return 0
    return max(
        _number(decoded.partitions),
        _number(decoded.total),
        len(bytes(decoded.assignment)) // _ASSIGNED_BYTES_MIN,
        sum(len(topic.partitions) for topic in rows),
    )


def _number(text: msgspec.Raw) -> int:
    digits = bytes(text)
    # The rules refuse longer numbers, so they create nothing.
    return int(digits) if digits.isdigit() and len(digits) < 10 else 0
