"""Every known bug put into the real code is found: most within some hundred histories, one within two thousand."""

from collections.abc import Iterator
from itertools import chain

import pytest

from tests.simulation.bugs import BUGS, BUGS_OF_PROOFS
from tests.simulation.run import history
from tests.simulation.simulation import Simulation
from tests.support.descriptors import close_files_of_the_dead

SEEDS_MAX = 2_000
# The seed at which the search begins, to keep it short; after a change of the rules other histories find the bug.
FOUND_AT = {
    "a member joins by the high watermark its leader heard of": 1_820,
    "a member joins by any fetch": 136,
    "truncation to the high watermark": 16,
    "no truncation": 13,
    "a follower reports before it truncates": 6,
    "an append is settled by its offset alone": 989,
    "older partition epochs are accepted": 51,
    "reports about a namesake count": 52,
    "restarted members are accepted": 36,
    "a crashed replica is eligible by its own, older high watermark": 8,
    "a crashed replica is eligible whatever is left of its log": 7,
}


@pytest.fixture(autouse=True)
def files_are_closed() -> Iterator[None]:
    """Close the files that brokers had open when they died in a history."""
    yield
    close_files_of_the_dead("/isrflow-simulation-")


@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("bug", BUGS)
def test_a_known_bug_is_found(bug: str) -> None:
    begin = FOUND_AT.get(bug, 1)
    with BUGS[bug]():
        seeds = chain(range(begin, SEEDS_MAX), range(1, begin))
        found = next((violated for seed in seeds if (violated := Simulation(seed).run())), None)
    assert found is not None
    assert found.invariant != "crash"


@pytest.mark.timeout(1_500)
@pytest.mark.parametrize("bug", BUGS_OF_PROOFS)
def test_a_wrong_proof_of_a_crashed_log_is_found(bug: str) -> None:
    begin = FOUND_AT.get(bug, 1)
    with BUGS_OF_PROOFS[bug]():
        seeds = chain(range(begin, SEEDS_MAX), range(1, begin))
        ran = (history(seed, machine_crashes=True, trace=False, has_eligible=True)[1] for seed in seeds)
        found = next((violated for violated in ran if violated is not None), None)
    assert found is not None
    assert found.invariant in ("D3", "D4")
