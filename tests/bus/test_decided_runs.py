"""Decisions in runs are the same as one by one, for every reader of a batch."""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from bus import partition_index
from bus.decided_runs import DecidedRuns, runs_in
from bus.interface import Decided
from conf.loader import load
from sinks.metric_snapshot import count_decisions
from state.alike import Said, decisions_of
from state.canonical import numbered_runs
from state.decisions import LeaderAndIsr
from state.part import part_of
from state.reason import Reason
from state.runs import parts_of
from streaming import engine_log
from streaming.batch_writer import feedback_events
from streaming.engine_log import EngineLog
from tests.state.test_runs import led, mixed, one_of, row


def said() -> list[Said]:
    """Return decisions of all forms: elections in patterns and by themselves, clean and unclean, and others."""
    decisions = mixed()
    for number in range(20, 24):
        one = one_of(row(led(), "plain", number))
        assert isinstance(one, LeaderAndIsr)
        unclean = replace(one, unclean=number > 22, reason=Reason.UNCLEAN_ELECTION)
        decisions += [unclean, replace(one, partition=number + 10, passed_over={1: "FENCED"}, reason=Reason.ISR_SHRUNK)]
        decisions.append(replace(one, partition=number + 20, reason=Reason.ISR_SHRUNK))
    return decisions


RUNS = DecidedRuns(numbered_runs(parts_of(said())))
ONE_BY_ONE = [Decided(*one[:2], one.text) for one in numbered_runs(map(part_of, decisions_of(said())))]


def test_they_are_a_sequence_of_decisions() -> None:
    assert max(run.decisions for run in RUNS.runs) > 1
    assert list(RUNS) == ONE_BY_ONE
    assert len(RUNS) == len(ONE_BY_ONE)
    assert [RUNS[place] for place in range(len(RUNS))] == ONE_BY_ONE
    assert (RUNS[-1], RUNS[-len(RUNS)], RUNS[2:9]) == (ONE_BY_ONE[-1], ONE_BY_ONE[0], ONE_BY_ONE[2:9])
    for beyond in (len(RUNS), -len(RUNS) - 1):
        with pytest.raises(IndexError):
            RUNS[beyond]


def test_the_same_is_counted() -> None:
    assert count_decisions(runs_in(RUNS)) == count_decisions(runs_in(ONE_BY_ONE))


@pytest.mark.parametrize("many", [2, 10_000])
def test_the_same_is_indexed(monkeypatch: pytest.MonkeyPatch, many: int) -> None:
    monkeypatch.setattr(partition_index, "ENTRIES_PER_SEQ_MAX", many)
    assert partition_index.entries_of(runs_in(RUNS)) == partition_index.entries_of(runs_in(ONE_BY_ONE))


def test_the_same_is_fed_back() -> None:
    assert feedback_events(RUNS) == feedback_events(ONE_BY_ONE)


@pytest.mark.parametrize("shown", [0, 3, 7, 1_000])
def test_the_same_is_logged(monkeypatch: pytest.MonkeyPatch, shown: int) -> None:
    monkeypatch.setattr(engine_log, "ELECTIONS_SHOWN_MAX", shown)
    assert lines_about(RUNS) == lines_about(ONE_BY_ONE)


def lines_about(decisions: Any) -> list[Any]:
    """Return what the engine logs of a batch."""
    log = EngineLog(load(), Path("data/bus.db.checkpoint"), 1)
    with capture_logs() as lines:
        log.committed(4, decisions)
    return lines
