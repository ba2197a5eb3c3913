"""Idempotent producers: repeated batches are stored once (KIP-98)."""

from pathlib import Path

import pytest

from brokers.mock.log.log import Log, LogConfig
from brokers.mock.log.producers import new_producer_id, sequence_after
from tests.support.batches import batch


def sent(log: Log, sequence: int, records: int = 2, epoch: int = 0, producer_id: int = 7) -> tuple[int, int, bool]:
    values = [b"x"] * records
    made = batch(*values, producer_id=producer_id, producer_epoch=epoch, sequence=sequence)
    return tuple(log.append_as_leader(made, 0))  # type: ignore[return-value]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, LogConfig(), clean=False)


def test_a_repeated_batch_is_stored_once(log: Log) -> None:
    assert sent(log, 0) == (0, 1, False)
    assert sent(log, 2) == (2, 3, False)
    assert sent(log, 0) == (0, 1, True)
    assert sent(log, 2) == (2, 3, True)
    assert log.log_end_offset == 4


def test_only_the_last_five_batches_are_known(log: Log) -> None:
    for sequence in range(0, 12, 2):
        sent(log, sequence)
    assert sent(log, 2) == (2, 3, True)
    with pytest.raises(Exception, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        sent(log, 0)


def test_a_gap_is_refused(log: Log) -> None:
    sent(log, 0)
    with pytest.raises(Exception, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        sent(log, 3)
    assert sent(log, 2) == (2, 3, False)


def test_an_older_producer_epoch_is_fenced(log: Log) -> None:
    sent(log, 0, epoch=1)
    with pytest.raises(Exception, match="INVALID_PRODUCER_EPOCH"):
        sent(log, 2, epoch=0)
    with pytest.raises(Exception, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        sent(log, 2, epoch=2)
    assert sent(log, 0, epoch=2) == (2, 3, False)


def test_an_unknown_producer_may_begin_anywhere(log: Log) -> None:
    """A leader may never have seen records that retention or truncation removed (KIP-360)."""
    assert sent(log, 40) == (0, 1, False)


def test_producers_are_known_after_a_restart_and_a_truncation(log: Log) -> None:
    for sequence in range(0, 8, 2):
        sent(log, sequence)
    log.close()
    again = Log(log.directory, LogConfig(), clean=False)
    assert sent(again, 6) == (6, 7, True)
    again.truncate_to(6)
    assert sent(again, 4) == (4, 5, True)
    assert sent(again, 6) == (6, 7, False)


def test_a_follower_knows_the_producers_too(log: Log, tmp_path: Path) -> None:
    sent(log, 0)
    follower = Log(tmp_path / "follower", LogConfig(), clean=False)
    follower.append_as_follower(log.read(0, 1 << 20, 2))
    assert sent(follower, 0) == (0, 1, True)


def test_sequence_numbers_wrap_around() -> None:
    assert sequence_after(2**31 - 1, 1) == 0
    assert sequence_after(2**31 - 2, 4) == 2


def test_a_producer_id_is_given_once_whatever_becomes_of_disks() -> None:
    """Nothing is counted, so a broker that begins with an empty disk repeats nothing."""
    given = [new_producer_id() for _ in range(10_000)]
    assert len(set(given)) == len(given)
    assert all(2**62 <= one < 2**63 for one in given), "former ids were lower, and Kafka's have 63 bits"
