"""Where a follower cuts its log, from its leader's answer (``AbstractFetcherThread.getOffsetTruncationState``)."""

from pathlib import Path

import pytest

from brokers.mock.log.epochs import UNDEFINED, EndOffset
from brokers.mock.log.log import Log, LogConfig
from brokers.mock.replicas.truncation import Truncation, epoch_to_ask, truncation
from tests.support.batches import batch

END = 20


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """A follower's log with offsets 0 to 9 in epoch 0, and 10 to 19 in epoch 3."""
    log = Log(tmp_path / "log", LogConfig(), clean=False)
    for epoch in (0, 3):
        for _ in range(5):
            log.append_as_leader(batch(b"a", b"b"), epoch)
    return log


@pytest.mark.parametrize(
    ("leader", "offset", "complete"),
    [
        # The leader knows the epoch: whose records of it are fewer?
        (EndOffset(3, 15), 15, True),
        (EndOffset(3, 30), END, True),
        # It knows only an earlier one, which this log has too.
        (EndOffset(0, 6), 6, True),
        (EndOffset(0, 14), 10, True),
        # It names an epoch between two of this log's, so the nearest one below is asked about next.
        (EndOffset(2, 12), 10, False),
        (EndOffset(2, 4), 10, False),
        # It names a later one than this log has.
        (EndOffset(5, 12), 12, True),
        (EndOffset(5, 30), END, True),
    ],
)
def test_a_log_is_cut_to_where_it_agrees_with_its_leader(
    log: Log, leader: EndOffset, offset: int, complete: bool
) -> None:
    assert truncation(log, 0, leader) == Truncation(offset, complete)


@pytest.mark.parametrize(("high_watermark", "offset"), [(7, 7), (30, END)])
def test_a_log_is_cut_to_what_was_committed_if_its_leader_knows_no_such_epoch(
    log: Log, high_watermark: int, offset: int
) -> None:
    leader = EndOffset(UNDEFINED, UNDEFINED)
    assert truncation(log, high_watermark, leader) == Truncation(offset, complete=True)


def test_the_leader_is_asked_about_the_last_epoch_of_a_log_with_records(log: Log, tmp_path: Path) -> None:
    assert epoch_to_ask(log) == 3
    empty = Log(tmp_path / "empty", LogConfig(), clean=False)
    assert epoch_to_ask(empty) is None
    empty.begin_epoch(4)
    assert epoch_to_ask(empty) is None
