"""Where a follower's log parts from its leader's (KIP-101, KIP-279)."""

from typing import NamedTuple

from brokers.mock.log.epochs import UNDEFINED, EndOffset
from brokers.mock.log.log import Log


class Truncation(NamedTuple):
    """Say where to cut, and whether the logs agree below: if not, the leader must be asked again."""

    offset: int
    complete: bool


def epoch_to_ask(log: Log) -> int | None:
    """Name the epoch to ask the leader about; None when the log holds nothing that could differ."""
    latest = log.epochs.latest
    return latest if latest != UNDEFINED and log.log_end_offset > log.log_start_offset else None


def truncation(log: Log, high_watermark: int, leader: EndOffset) -> Truncation:
    """Judge the leader's answer to ``epoch_to_ask``.

    When the leader names an epoch that this log has nothing of, the log is cut to where that epoch
    would end and the next lower epoch is asked for: so every round goes down at least one epoch.
    """
    end = log.log_end_offset
    if leader.end_offset == UNDEFINED:
        # The leader knows no epoch so low or so high: what was committed is all that is sure.
        return Truncation(min(high_watermark, end), True)
    own = log.end_offset_for_epoch(leader.epoch)
    if own.end_offset == UNDEFINED:
        return Truncation(min(leader.end_offset, end), True)
    if own.epoch != leader.epoch:
        return Truncation(min(own.end_offset, end), False)
    return Truncation(min(own.end_offset, leader.end_offset, end), True)
