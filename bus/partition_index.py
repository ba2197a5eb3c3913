"""The index from a partition to the seqs of the decisions about it.

The problem: among ten million decisions, the few about one partition must be found in well under a second. But the
index is written in the transaction of the decisions, so each of its rows costs the engine time.

The insight: most decisions need no row. High watermarks and answers without an error change no partition. The
decisions on one event are in canonical order, by kind, topic and partition, so an event that changes thousands of
partitions gets one row, and a search by halves finds a partition among its decisions (``history.about``).

    (era, key, seq)    key   a checksum of topic and partition; EVERY for an event about more than ``ROWS_PER_SEQ_MAX``
                       era   counts up every ``ERA_ROWS`` rows

New rows go into the newest era alone, which is small, so a commit changes few blocks of the file however long the index
is. A reader looks into each era once. Two partitions may have the same key, so a seq found here may lack a decision
about the partition; the reader sees that.

Rejected: an index over the column of bodies, because each decision would be parsed, and each row would land anywhere
in an index of gigabytes.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

import msgspec

from bus.interface import Decided, Seqs

ROWS_PER_SEQ_MAX = 4_096
ERA_ROWS = 1 << 18
EVERY = -1
# As a partition: what is about the whole topic.
WHOLE_TOPIC = -1
_KINDS = ("leader_and_isr", "stop_replica", "topic", "config", "answer", "rejected")
_PREFIXES = tuple(b'{"kind":"%b"' % kind.encode() for kind in _KINDS)
_DONE = b'"error":"NONE"'
_RESULTS = b'"results":'

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS partition_seqs (era INTEGER NOT NULL, key INTEGER NOT NULL, seq INTEGER NOT NULL,"
    " PRIMARY KEY (era, key, seq)) WITHOUT ROWID",
    # first_seq: the index has every decision from there on. A file may have older ones, made before there was an index.
    "CREATE TABLE IF NOT EXISTS index_eras (era INTEGER PRIMARY KEY, rows INTEGER NOT NULL, first_seq INTEGER NOT NULL,"
    " last_seq INTEGER NOT NULL)",
)


class _Result(msgspec.Struct):
    topic: str
    partition: int
    error: str


class _Subject(msgspec.Struct):
    """What a decision is about."""

    topic: str | None = None
    partition: int = WHOLE_TOPIC
    # Of a config decision.
    entity: str = ""
    name: str | None = None
    # Of an answer.
    results: tuple[_Result, ...] = ()


_subject = msgspec.json.Decoder(_Subject)
_seq_of = itemgetter(0)


def key_of(topic: str, partition: int) -> int:
    """Return the key of a partition, or of a topic with ``WHOLE_TOPIC``."""
    return zlib.crc32(b"%b/%d" % (topic.encode(), partition))


def rows_of(decisions: Sequence[Decided]) -> list[tuple[int, int]]:
    """Return the (key, seq) of each partition and topic that decisions are about, in order of seq, without doubles."""
    rows: list[tuple[int, int]] = []
    about = [one for one in decisions if one.body.startswith(_PREFIXES)]
    for seq, group in groupby(about, key=_seq_of):
        rows += [(key, seq) for key in _keys_of(list(group))]
    return rows


def _keys_of(decisions: list[Decided]) -> Iterable[int]:
    """Return the keys of the decisions on one event."""
    if len(decisions) > ROWS_PER_SEQ_MAX:
        return (EVERY,)
    keys = {
        key
        for one in decisions
        # Of several results one may be refused.
        if _DONE not in one.body or _RESULTS in one.body
        for key in _keys_in(one.body)
    }
    return keys if len(keys) <= ROWS_PER_SEQ_MAX else (EVERY,)


def _keys_in(body: bytes) -> Iterator[int]:
    subject = _subject.decode(body)
    if subject.topic is not None:
        yield key_of(subject.topic, subject.partition)
    if subject.entity == "topic" and subject.name is not None:
        yield key_of(subject.name, WHOLE_TOPIC)
    for result in subject.results:
        if result.error != "NONE":
            yield key_of(result.topic, result.partition)


def add(connection: sqlite3.Connection, decisions: Sequence[Decided], after: int, through: int) -> None:
    """Add the decisions on the events after ``after``, through ``through``, in the caller's transaction.

    If a program without an index wrote decisions in between, the index begins with these.
    """
    rows = rows_of(decisions)
    newest = connection.execute("SELECT era, rows, first_seq, last_seq FROM index_eras ORDER BY era DESC LIMIT 1")
    era, count, first_seq, last_seq = newest.fetchone() or (-1, ERA_ROWS, 0, -1)
    if last_seq != after or count >= ERA_ROWS:
        first_seq = first_seq if last_seq == after else after + 1
        era, count = era + 1, 0
    connection.executemany("INSERT INTO partition_seqs VALUES (?, ?, ?)", sorted((era, *row) for row in rows))
    connection.execute(
        "INSERT OR REPLACE INTO index_eras VALUES (?, ?, ?, ?)", (era, count + len(rows), first_seq, through)
    )


def is_there(connection: sqlite3.Connection) -> bool:
    """Say whether a file has the index; older ones do not."""
    return bool(connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'index_eras'").fetchone())


def seqs_about(connection: sqlite3.Connection, topic: str, partition: int, before: int, limit: int) -> Seqs:
    """Find the seqs about a partition (``Bus.seqs_about``)."""
    eras = connection.execute("SELECT era, first_seq FROM index_eras ORDER BY era DESC").fetchall()
    if not eras:
        return Seqs([], None)
    keys = (key_of(topic, partition), key_of(topic, WHOLE_TOPIC), EVERY)
    complete_from = eras[0][1]
    found: list[int] = []
    for era, first_seq in eras:
        if len(found) >= limit or first_seq != complete_from:
            break
        rows = connection.execute(
            "SELECT DISTINCT seq FROM partition_seqs WHERE era = ? AND key IN (?, ?, ?) AND seq < ?"
            " ORDER BY seq DESC LIMIT ?",
            (era, *keys, before, limit - len(found)),
        )
        found += [seq for (seq,) in rows]
    return Seqs(found, complete_from)


def remove_old(connection: sqlite3.Connection, through: int, rows_max: int) -> None:
    """Remove a slice of the oldest era if all of its decisions, those through ``through``, are gone."""
    oldest = connection.execute("SELECT era, last_seq FROM index_eras ORDER BY era LIMIT 1").fetchone()
    newest = connection.execute("SELECT max(era) FROM index_eras").fetchone()
    if oldest is None or oldest[1] > through or oldest[0] == newest[0]:
        return
    era = oldest[0]
    rows = connection.execute("SELECT key, seq FROM partition_seqs WHERE era = ? LIMIT ?", (era, rows_max)).fetchall()
    if rows:
        connection.execute("DELETE FROM partition_seqs WHERE era = ? AND (key, seq) <= (?, ?)", (era, *rows[-1]))
    else:
        connection.execute("DELETE FROM index_eras WHERE era = ?", (era,))
