"""What was done to stock clusters is told from their logs."""

from pathlib import Path

import pytest

from tests.brokers.shadow.worlds import BUNDLES, operations, recorded, short, steps_of

# controller.quorum.append.linger.ms, and some time to get there.
LINGER_MS = 100
EXPECTED = {
    "create orders": "topic_created certain orders-0,orders-1,orders-2,orders-3",
    "add partitions": "partitions_added certain brief-2",
    "set topic": "settings_changed certain",
    "set password": "access_changed certain",
    "allow": "access_changed certain",
    "set quota": "quotas_changed certain",
    "suspend 3": "isr_shrunk certain by 1",
    "kill 2": "session_expired certain by 2",
    "elect preferred": "preferred_election likely",
    "stop 3": "controlled_shutdown certain by 3",
    "start 3": "broker_ready certain by 3",
    "reorder pair": "reassignment_done_at_once certain pair-0",
    "move pair to 3": "reassignment_began certain pair-0",
    "cancel the move": "reassignment_cancelled certain pair-0",
    "elect uncleanly": "unclean_election certain frail-0",
    "delete brief": "topic_deleted certain",
    "restart controller": "controller_changed certain",
    "unregister 3": "broker_unregistered certain by 3",
}


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_what_was_done_to_a_stock_cluster_is_told(bundle: Path) -> None:
    found, steps = operations(*recorded(bundle)), steps_of(bundle)
    for step, expected in EXPECTED.items():
        # Records have the time of the first one in their batch.
        begins_ms, ends_ms = steps[step]["began_ms"] - LINGER_MS, steps[step]["ended_ms"]
        within = [one for one in found if begins_ms <= one.time_ms <= ends_ms]
        assert any(expected in short(one) for one in within), (step, [short(one) for one in within])
    assert [short(one) for one in found if one.certainty == "open"] == []
