"""What a job checks again and again while it runs: who holds the claim, and whether its parts still work."""

from bus.interface import Bus, Claim
from streaming.decider import Decider
from streaming.job_errors import JobError, SupersededError
from streaming.retention import Retention
from streaming.ticker import Ticker


def check_claim(bus: Bus, claim: Claim) -> None:
    """Raise ``SupersededError`` if another job claimed after ``claim``."""
    claimed = bus.claimed_epoch()
    if claimed != claim.controller_epoch:
        raise SupersededError(
            f"another job claimed controller epoch {claimed}, so this one, with epoch {claim.controller_epoch}, stops"
        )


def check_parts(bus: Bus, claim: Claim, ticker: Ticker, retention: Retention, decider: Decider) -> None:
    """Start an ended query again. Raise ``SupersededError`` if another job claimed, ``JobError`` if a thread ended.

    The ticker, and often the query too, end by themselves if another job has claimed. So the claim is checked first.
    """
    if not ticker.is_alive():
        check_claim(bus, claim)
        raise JobError(f"ticks cannot be published: {ticker.error or 'the ticker ended'}") from ticker.error
    if not retention.is_alive():
        # Otherwise the bus would grow unnoticed until the disk is full.
        check_claim(bus, claim)
        raise JobError(f"old events cannot be removed from the bus: {retention.error!r}") from retention.error
    if not decider.is_active():
        check_claim(bus, claim)
        decider.go_on()
