"""Where a follower's log diverges from its leader's (KIP-101, KIP-279). ``fetcher`` explains why that matters."""

from typing import NamedTuple

from brokers.mock.log.epochs import UNDEFINED, EndOffset
from brokers.mock.log.log import Log


class Truncation(NamedTuple):
    """The offset to cut at, and whether the logs certainly agree below it. If not, the leader must be asked again."""

    offset: int
    complete: bool


def epoch_to_ask(log: Log) -> int | None:
    """Return the epoch to ask the leader about; None if the log has no records that could differ."""
    latest = log.epochs.latest
    return latest if latest != UNDEFINED and log.log_end_offset > log.log_start_offset else None


def truncation(log: Log, high_watermark: int, leader: EndOffset) -> Truncation:
    """Decide where to cut, from the leader's answer about ``epoch_to_ask``.

    If the leader names an epoch that this log does not have, the log is cut to where that epoch would end, and the next
    question is about a lower epoch.
    """
    end = log.log_end_offset
    if leader.end_offset == UNDEFINED:
        # The leader's log has no epoch as late as ours, so only committed records are certain.
        return Truncation(min(high_watermark, end), True)
    own = log.end_offset_for_epoch(leader.epoch)
    if own.end_offset == UNDEFINED:
        return Truncation(min(leader.end_offset, end), True)
    if own.epoch != leader.epoch:
        return Truncation(min(own.end_offset, end), False)
    return Truncation(min(own.end_offset, leader.end_offset, end), True)
