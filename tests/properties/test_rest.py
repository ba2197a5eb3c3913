"""Nothing that may wait on a quiet cluster leads to a decision, whatever happened before.

Tests of the rules check the same of each event that they publish (``World``).
"""

from hypothesis import given, settings

from state.event_text import decode
from state.policy import Policy
from tests.properties.laws import check_rest, policy_in_force
from tests.support.random_logs import draws, walk
from tests.support.scenes import Draw

POLICY = Policy(num_partitions=2, leader_imbalance_check_interval_seconds=1, broker_connection_lost_grace_ms=50)


@settings(max_examples=600, deadline=None)
@given(draws(max_size=80))
def test_what_may_wait_decides_nothing(drawn: list[Draw]) -> None:
    for state, raw, outcome in walk(drawn, POLICY):
        check_rest(state, decode(raw), outcome, policy_in_force(state, POLICY))
