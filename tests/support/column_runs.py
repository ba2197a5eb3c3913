"""Decisions of given texts in columns, as the rules make them of decisions that share no text."""

from collections.abc import Sequence
from itertools import groupby

from bus.decided_runs import DecidedRuns
from bus.interface import Decided
from isrflow.decision_columns import BLANKS, ROWS_MAX, SILENT, DecisionColumns, packed
from state.numbered_run import NumberedRun, kind_of


def in_columns(decisions: Sequence[Decided]) -> DecidedRuns:
    """Return the decisions, with those on one event in columns. Each kind has columns of its own."""
    return DecidedRuns(
        [
            _run(same[start : start + ROWS_MAX])
            for _, some in groupby(decisions, key=lambda one: (one.seq, _kind(one)))
            for same in [list(some)]
            for start in range(0, len(same), ROWS_MAX)
        ]
    )


def _run(decisions: Sequence[Decided]) -> NumberedRun:
    first, count = decisions[0], len(decisions)
    kind = _kind(first)
    if count == 1:
        return NumberedRun(first.seq, first.idx, first.body, kind=kind)
    texts = [one.body.replace(b"%", b"%%") + SILENT * BLANKS for one in decisions]
    zeros = [0] * count
    columns = DecisionColumns(texts, [b'"t"', b'""'], [count], packed(zeros, range(count), zeros, zeros))
    return NumberedRun(first.seq, first.idx, b"", columns, kind)


def _kind(decided: Decided) -> bytes:
    return kind_of(decided.body) if decided.body.startswith(b"{") else b""
