"""Remove old events and decisions that had no lasting effect, slice by slice.

The problem: an idle cluster publishes some ticks a second, and its brokers send heartbeats. They would fill the log,
and push out the events that explain how the cluster came to be as it is.

The insight: ticks, heartbeats, reports of log ends and a shadow's signs of life are needed only to decide the log
again. Where the state is too old to be rebuilt, only those matter that led to a decision: a tick that ended a session,
a heartbeat that unfenced a broker. High watermarks are superseded by later ones.
"""

import sqlite3
from typing import NamedTuple

from bus.interface import Decided
from bus.retention import SLICE_BYTES, first_events
from isrflow.contract import HEARTBEATS, LOG_END_REPORTS
from isrflow.decision_rows import opened
from isrflow.sqlite import decision_table
from state.numbered_run import kind_of

ROUTINE_EVENTS = ("tick", *HEARTBEATS, *LOG_END_REPORTS, "leader_imbalance")
ROUTINE_DECISIONS = frozenset({b"high_watermark", b"no_op", b"imbalance"})
_ANSWER = b"answer"
_MARKS = ", ".join("?" * len(ROUTINE_EVENTS))
# In the text of an event, quotes within a value are escaped.
NO_CHANGE = b'"cause":"no_change"'


class ThinnedDecisions(NamedTuple):
    """A slice of decisions that was checked."""

    rows: int
    # The (seq, index) of the last one.
    last: tuple[int, int]
    # Whether there are more decisions.
    is_cut: bool


class ThinnedEvents(NamedTuple):
    """A slice of events that was checked."""

    rows: int
    rows_kept: int
    # The seq of the last one.
    last: int


def thin_decisions(
    connection: sqlite3.Connection, after: tuple[int, int], through: int, rows_max: int, bus: str
) -> ThinnedDecisions | None:
    """Thin the first slice of the decisions after ``after`` on events up to ``through``: about ``rows_max``.

    A block that loses some of its decisions is written again with the others. Return None if there is nothing to thin.
    """
    rows = connection.execute(
        f"SELECT seq, idx, body, (SELECT kind IN ({_MARKS}) FROM events WHERE events.seq = decisions.seq)"
        " FROM decisions WHERE (seq, idx) > (?, ?) AND seq <= ? ORDER BY seq, idx LIMIT ?",
        (*ROUTINE_EVENTS, *after, through, rows_max),
    )
    count, size, last, thinned, kept = 0, 0, after, list[tuple[int, int]](), list[Decided]()
    is_cut = False
    for seq, idx, body, is_of_routine in rows:
        held = opened(Decided(seq, idx, body), bus).decisions()
        left = [one for one in held if not _is_routine(one.body, is_of_routine=is_of_routine)]
        if len(left) < len(held):
            thinned.append((seq, idx))
            kept += left
        last = held[-1][:2]
        count, size = count + len(held), size + sum(len(one.body) for one in held)
        if is_cut := size >= SLICE_BYTES or count >= rows_max:
            break
    if not count:
        return None
    connection.executemany("DELETE FROM decisions WHERE seq = ? AND idx = ?", thinned)
    decision_table.write(connection, kept)
    return ThinnedDecisions(count, last, is_cut)


def thin_events(connection: sqlite3.Connection, after: int, through: int, rows_max: int) -> ThinnedEvents | None:
    """Thin the first slice of the events after ``after``, through ``through``. Return None if there is none.

    Their decisions must have been thinned before.
    """
    seqs = first_events(connection, after, through, rows_max)
    if not seqs:
        return None
    gone = connection.execute(
        f"DELETE FROM events WHERE seq > ? AND seq <= ? AND (kind IN ({_MARKS})"
        " OR (kind = 'observed' AND instr(raw, ?)))"
        " AND NOT EXISTS (SELECT 1 FROM decisions WHERE decisions.seq = events.seq)",
        (after, seqs[-1], *ROUTINE_EVENTS, NO_CHANGE),
    ).rowcount
    return ThinnedEvents(len(seqs), len(seqs) - gone, seqs[-1])


def _is_routine(body: bytes, *, is_of_routine: bool) -> bool:
    kind = kind_of(body)
    return kind in ROUTINE_DECISIONS or (kind == _ANSWER and is_of_routine)
