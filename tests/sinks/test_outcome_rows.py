"""Outcomes become rows of bounded size, and rows become the same outcomes again."""

import random

import pytest

from sinks import outcome_rows
from sinks.outcome_rows import outcomes_of, rows_of
from sinks.row_bytes import COMPRESSED_BYTES_MIN
from state.part import Part
from state.shard_outcome import CLUSTER_PAGE, ShardOutcome


def made(decisions: int, pages: int, size: int) -> ShardOutcome:
    parts = [Part(7, 0, "topic", n, -1, b'{"partition":%d%s}' % (n, b" " * size)) for n in range(decisions)]
    stored = [*((n, b"p" * size) for n in range(pages)), (CLUSTER_PAGE, b"c")]
    return ShardOutcome(3, 7, parts, stored, expires_ms=99)


def test_a_usual_outcome_is_one_uncompressed_row() -> None:
    outcome = made(5, 2, 100)
    (row,) = rows_of(outcome)
    assert outcomes_of([row]) == [outcome]
    assert b'{"partition":4' in row


@pytest.mark.parametrize(("decisions", "pages"), [(4_000, 0), (0, 600), (4_000, 600), (0, 0)])
def test_a_long_outcome_becomes_several_rows_and_nothing_is_lost(
    monkeypatch: pytest.MonkeyPatch, decisions: int, pages: int
) -> None:
    monkeypatch.setattr(outcome_rows, "ROW_BYTES_MAX", 100_000)
    outcome = made(decisions, pages, 500)
    rows = list(rows_of(outcome))
    assert (len(rows) > 1) == (decisions + pages > 0)
    # Long rows of repetitive decisions are compressed.
    assert all(len(row) < COMPRESSED_BYTES_MIN + 100 for row in rows if b"p" * 500 not in row)
    assert all(len(row) < 103_000 for row in rows)
    random.Random(1).shuffle(rows)
    found = outcomes_of(rows)
    assert {(one.shard, one.seq, one.expires_ms) for one in found} == {(3, 7, 99)}
    assert sorted(part for one in found for part in one.parts) == sorted(outcome.parts)
    assert sorted(page for one in found for page in one.pages) == sorted(outcome.pages)


def test_a_part_that_cannot_be_divided_is_a_row_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_rows, "ROW_BYTES_MAX", 1_000)
    noise = random.Random(2).randbytes(200_000)
    rows = list(rows_of(ShardOutcome(0, 1, [], [(0, b"a"), (1, noise), (CLUSTER_PAGE, b"c")])))
    assert [[page for page, _ in one.pages] for one in outcomes_of(rows)] == [[0], [1], [CLUSTER_PAGE]]
    assert outcomes_of(rows)[1].pages == [(1, noise)]
