"""The index from a partition to the seqs of the decisions about it.

The problem: among ten million decisions, the few about one partition must be found in well under a second. But the
index is written in the transaction of the decisions, so each of its entries costs the engine time.

The insight: most decisions need no entry, and an entry needs no table row of its own. High watermarks and answers to
requests that were carried out change no partition. The decisions on one event are in canonical order, by kind, topic
and partition. So an event that changes thousands of partitions gets one entry, and a binary search finds a partition
among its decisions (``history.about``). Entries are packed:

    index_tail        one row a commit: its entries, in no order
    partition_seqs    once the tail has ``ERA_ENTRIES``, it becomes an era: its entries in order, in ``BUCKETS`` rows

    an entry    key, a checksum of topic and partition (4 bytes), and seq (8 bytes); EVERY for an event about many

A reader looks through the tail, and into one row of each era. Two partitions may have the same key, so a seq found here
may lack a decision about the partition; the reader sees that.

Rejected: a row for each entry, because inserting it anywhere in a large table costs as much as the decision itself.
"""

import re
import sqlite3
import struct
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import chain, repeat

import msgspec

from isrflow.decision_columns import DecisionColumns
from state.numbered_run import NumberedRun

ENTRIES_PER_SEQ_MAX = 4_096
ERA_ENTRIES = 1 << 15
BUCKETS = 64
EVERY = 0
# In place of a partition's number, for decisions about the whole topic.
WHOLE_TOPIC = -1

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS index_tail (through INTEGER PRIMARY KEY, entries BLOB NOT NULL)",
    "CREATE TABLE IF NOT EXISTS partition_seqs (bucket INTEGER NOT NULL, era INTEGER NOT NULL, entries BLOB NOT NULL,"
    " PRIMARY KEY (bucket, era)) WITHOUT ROWID",
    # The newest era is the tail.
    "CREATE TABLE IF NOT EXISTS index_eras ("
    " era INTEGER PRIMARY KEY, count INTEGER NOT NULL, last_seq INTEGER NOT NULL)",
)
_ENTRY = struct.Struct(">IQ")
_SEQ = struct.Struct(">Q")
_KEY_BYTES = 4
_BUCKET_BITS = 32 - (BUCKETS - 1).bit_length()

# These kinds come first in the canonical order, so a decision's index is its place among them.
_CHANGES = frozenset({b"leader_and_isr", b"stop_replica", b"topic"})
_OTHERS = frozenset({b"answer", b"config", b"rejected", b"divergence", b"violation"})
# In these decisions no free text comes before the topic. A name that has an escape does not match.
_NAMED = re.compile(rb'"topic":"([^"\\]*)","topic_id":"[^"]*","partition":([0-9]+)')
_WATERMARK = b"high_watermark"
_DONE = b'"error":"NONE"'
_RESULTS = b'"results":'


class _Result(msgspec.Struct):
    topic: str
    partition: int
    error: str


class _Subject(msgspec.Struct):
    """The topic and partitions that a decision is about."""

    topic: str | None = None
    partition: int = WHOLE_TOPIC
    # Of a config decision.
    entity: str = ""
    name: str | None = None
    # Of an answer.
    results: tuple[_Result, ...] = ()


_subject = msgspec.json.Decoder(_Subject)


def key_of(topic: str, partition: int) -> int:
    """Return the key of a partition, or of a topic with ``WHOLE_TOPIC``."""
    return zlib.crc32(b"%b/%d" % (topic.encode(), partition))


def entries_of(runs: Sequence[NumberedRun]) -> list[bytes]:
    """Return an entry for each partition or topic that decisions change, or about which they refuse something."""
    many = {run.seq for run in runs if _holds_one_too_many(run) and run.kind in _CHANGES}
    entries = [_ENTRY.pack(EVERY, seq) for seq in sorted(many)]
    for run in runs:
        if run.seq not in many and run.kind != _WATERMARK:
            entries += _entries_of_run(run)
    return entries


def _entries_of_run(run: NumberedRun) -> list[bytes]:
    if run.columns and run.kind in _CHANGES:
        return _entries_of_columns(run.seq, run.columns)
    return [entry for body in run.each() for entry in _entries_in(run.seq, run.kind, body)]


def _entries_of_columns(seq: int, columns: DecisionColumns) -> list[bytes]:
    # The checksum of a topic is the beginning of its partitions'.
    begun = [zlib.crc32(topic.encode() + b"/") for topic in columns.topics()]
    each = chain.from_iterable(map(repeat, begun, columns.counts))
    keys = map(zlib.crc32, map(b"%d".__mod__, columns.column(0)), each)
    return list(map(_ENTRY.pack, keys, repeat(seq)))


def _holds_one_too_many(run: NumberedRun) -> bool:
    return run.idx <= ENTRIES_PER_SEQ_MAX < run.idx + run.decisions


def _entries_in(seq: int, kind: bytes, body: bytes) -> list[bytes]:
    if kind in _CHANGES:
        named = _NAMED.search(body)
        if named is not None:
            return [_ENTRY.pack(zlib.crc32(b"%b/%b" % named.groups()), seq)]
    elif kind not in _OTHERS or (_DONE in body and _RESULTS not in body):
        return []
    return [_ENTRY.pack(key, seq) for key in _keys_in(body)]


def _keys_in(body: bytes) -> Iterator[int]:
    subject = _subject.decode(body)
    if subject.topic is not None:
        yield key_of(subject.topic, subject.partition)
    if subject.entity == "topic" and subject.name is not None:
        yield key_of(subject.name, WHOLE_TOPIC)
    for result in subject.results:
        if result.error != "NONE":
            yield key_of(result.topic, result.partition)


def add(connection: sqlite3.Connection, decisions: Sequence[NumberedRun], through: int) -> None:
    """Add the decisions on the events since the last call, through ``through``, in the caller's transaction."""
    entries = entries_of(decisions)
    newest = connection.execute("SELECT era, count FROM index_eras ORDER BY era DESC LIMIT 1").fetchone()
    era, count = newest or (0, 0)
    if count >= ERA_ENTRIES:
        _end_era(connection, era)
        era, count = era + 1, 0
    if entries:
        connection.execute("INSERT INTO index_tail VALUES (?, ?)", (through, b"".join(entries)))
    connection.execute("INSERT OR REPLACE INTO index_eras VALUES (?, ?, ?)", (era, count + len(entries), through))


def _end_era(connection: sqlite3.Connection, era: int) -> None:
    """Put the entries of the tail in order."""
    entries = sorted(_unpacked(connection))
    starts = [bisect_left(entries, _ENTRY.pack(bucket << _BUCKET_BITS, 0)) for bucket in range(BUCKETS)]
    spans = zip(range(BUCKETS), starts, [*starts[1:], len(entries)], strict=True)
    rows = [(bucket, era, b"".join(entries[start:end])) for bucket, start, end in spans if end > start]
    connection.executemany("INSERT INTO partition_seqs VALUES (?, ?, ?)", rows)
    connection.execute("DELETE FROM index_tail")


def _unpacked(connection: sqlite3.Connection) -> Iterator[bytes]:
    for (packed,) in connection.execute("SELECT entries FROM index_tail"):
        for start in range(0, len(packed), _ENTRY.size):
            yield packed[start : start + _ENTRY.size]


def seqs_about(connection: sqlite3.Connection, topic: str, partition: int, before: int, limit: int) -> list[int]:
    """Find the seqs about a partition (``Bus.seqs_about``)."""
    eras = connection.execute("SELECT era FROM index_eras ORDER BY era DESC").fetchall()
    keys = {key_of(topic, partition), key_of(topic, WHOLE_TOPIC), EVERY}
    found: list[int] = []
    for place, (era,) in enumerate(eras):
        if len(found) >= limit:
            break
        seqs = _in_era(connection, era, keys) if place else _in_tail(connection, keys)
        # An event may have entries on both sides of an era's end.
        found += sorted({seq for seq in seqs if seq < before and seq not in found[-1:]}, reverse=True)
    return found[:limit]


def _in_tail(connection: sqlite3.Connection, keys: set[int]) -> Iterator[int]:
    wanted = {_ENTRY.pack(key, 0)[:_KEY_BYTES] for key in keys}
    for entry in _unpacked(connection):
        if entry[:_KEY_BYTES] in wanted:
            yield _SEQ.unpack_from(entry, _KEY_BYTES)[0]


def _in_era(connection: sqlite3.Connection, era: int, keys: set[int]) -> Iterator[int]:
    for key in keys:
        query = "SELECT entries FROM partition_seqs WHERE bucket = ? AND era = ?"
        row = connection.execute(query, (key >> _BUCKET_BITS, era)).fetchone()
        packed = b"" if row is None else row[0]
        count = len(packed) // _ENTRY.size
        wanted = _ENTRY.pack(key, 0)[:_KEY_BYTES]
        place = bisect_left(range(count), wanted, key=lambda nth: _key_at(packed, nth))
        while place < count and _key_at(packed, place) == wanted:
            yield _SEQ.unpack_from(packed, place * _ENTRY.size + _KEY_BYTES)[0]
            place += 1


def _key_at(packed: bytes, nth: int) -> bytes:
    start = nth * _ENTRY.size
    return packed[start : start + _KEY_BYTES]


def remove_old(connection: sqlite3.Connection, through: int) -> bool:
    """Remove the oldest era if all of its decisions are gone, because those up to ``through`` were removed.

    Return whether there was such an era.
    """
    oldest, *others = connection.execute("SELECT era, last_seq FROM index_eras ORDER BY era LIMIT 2").fetchall() or [
        None
    ]
    if oldest is None or not others or oldest[1] > through:
        return False
    places = [(bucket, oldest[0]) for bucket in range(BUCKETS)]
    connection.executemany("DELETE FROM partition_seqs WHERE bucket = ? AND era = ?", places)
    connection.execute("DELETE FROM index_eras WHERE era = ?", (oldest[0],))
    return True
