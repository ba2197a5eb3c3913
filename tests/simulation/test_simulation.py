"""A fixed set of histories violates no invariant, and a seed gives the same history in every process."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from controller_logic import liveness
from tests.simulation.run import explain, history
from tests.simulation.simulation import Simulation

ROOT = Path(__file__).parents[2]
BLOCK = 10


@pytest.mark.parametrize("first", range(1, 41, BLOCK))
def test_killed_brokers_lose_nothing(first: int) -> None:
    _hold(first, machine_crashes=False)


@pytest.mark.parametrize("first", range(1, 21, BLOCK))
def test_crashed_machines_lose_nothing_while_one_member_has_it_all(first: int) -> None:
    _hold(first, machine_crashes=True)


@pytest.mark.parametrize("first", range(1, 21, BLOCK))
@pytest.mark.parametrize("machine_crashes", [False, True])
def test_eligible_leaders_have_every_committed_record(first: int, machine_crashes: bool) -> None:
    _hold(first, machine_crashes, has_eligible=True)


def test_an_eligible_replica_that_lost_its_tail_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With this defect each broker counts as shut down cleanly. In this history one loses its machine."""
    monkeypatch.setattr(liveness, "has_whole_logs", lambda *_: True)
    _, violated = history(8, machine_crashes=True, trace=False, has_eligible=True)
    assert violated is not None
    assert violated.invariant in ("D3", "D4")


def test_a_log_end_refused_for_a_wrong_clock_is_reported_in_the_end() -> None:
    """In this history the leader's clock is far ahead when the last record is appended."""
    _, violated = history(7107, machine_crashes=False, trace=False)
    assert violated is None


def test_a_replica_outside_the_isr_may_follow_a_deposed_leader() -> None:
    """In this history one wakes up, and a follower that lost touch with all others cuts its log to the leader's."""
    _, violated = history(919, machine_crashes=True, trace=False)
    assert violated is None


def test_a_topic_without_a_leader_may_be_deleted() -> None:
    """In this history its only in-sync replica comes back meanwhile, and removes what was committed."""
    _, violated = history(952, machine_crashes=True, trace=False)
    assert violated is None


def _hold(first: int, machine_crashes: bool, *, has_eligible: bool = False) -> None:
    failing, acknowledged = [], 0
    for seed in range(first, first + BLOCK):
        simulation, violated = history(seed, machine_crashes, trace=False, has_eligible=has_eligible)
        acknowledged += simulation.checkers.clients.acknowledged_count
        if violated is not None:
            explain(simulation, seed, violated, machine_crashes, trace=False)
            failing.append(seed)
    assert failing == []
    assert acknowledged > 5 * BLOCK, "histories in which nothing happens test nothing"


def _digest(seed: int) -> str:
    digest = hashlib.sha256()
    Simulation(seed, tell=lambda row: digest.update(str(row).encode())).run()
    return digest.hexdigest()


def test_a_seed_names_one_history() -> None:
    """Earlier histories in the same process, the hash seed and objects' addresses change nothing."""
    here = _digest(7)
    _digest(8)
    assert _digest(7) == here
    code = "from tests.simulation.test_simulation import _digest; print(_digest(7))"
    told = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == here
