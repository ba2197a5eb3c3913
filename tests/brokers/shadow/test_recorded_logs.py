"""What was done to stock clusters is told from their logs."""

import random
from pathlib import Path

import pytest

from brokers.shadow.events import events_of
from brokers.shadow.operations import Operations
from brokers.shadow.source import Batch, Gap, Read
from tests.brokers.shadow.worlds import BUNDLES, operations, recorded, rows_of, rows_of_image, short, steps_of

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
    assert [short(one) for one in found if one.cause in ("directory_failed", "gap")] == [], "there was none"


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_the_rows_of_all_operations_make_the_image(bundle: Path) -> None:
    cut = Operations()
    found = [*(one for read in recorded(bundle) for one in cut.take(read)), *cut.end()]
    made, whole = rows_of(found), rows_of_image(cut.image)
    settings = made.pop("settings")
    assert whole.pop("settings").items() <= settings.items()
    assert made == whole
    assert len(made["partitions"]) == 7
    assert cut.notes == []


@pytest.mark.parametrize("bundle", BUNDLES, ids=lambda path: path.name)
def test_whatever_is_missing_operations_come_in_order(bundle: Path) -> None:
    rng = random.Random(1)
    batches = [one for one in recorded(bundle) if isinstance(one, Batch)]
    for _ in range(60):
        cut, expected, last = Operations(), 0, -1
        kept = rng.random()
        for one in batches:
            if rng.random() > kept:
                continue
            reads: list[Read] = [one] if one.base_offset == expected else [Gap(expected, one.base_offset, "lost"), one]
            expected = one.next_offset
            for told in (told for read in reads for told in cut.take(read)):
                assert last < told.offset <= told.last_offset
                last = told.offset
                assert [event.part for event in events_of(told, "Q")] == [0]
        list(cut.end())
