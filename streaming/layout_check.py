"""Check that a job's settings fit the layout of the state, before its first claim and after each one."""

from bus.interface import Bus, Claim
from conf.settings import Settings
from state.codec import CodecError
from streaming.job_errors import JobError
from streaming.layout import misfit


class LayoutCheck:
    """The check of shards and pages, when this is made and after each claim.

    ``isrflow reshard`` may run between two checks. It claims before it changes the layout. So if the job's claim is the
    first one since the last check, the layout is still the same, and the state need not be read again.
    """

    def __init__(self, bus: Bus, settings: Settings) -> None:
        self._bus = bus
        self._settings = settings
        # The newest epoch in which the layout was found to fit.
        self._fits_in = 0
        self._check()

    def claimed(self, claim: Claim) -> None:
        """Check again if another job has claimed since. Raises ``JobError``."""
        if claim.controller_epoch != self._fits_in + 1:
            self._check()
        self._fits_in = claim.controller_epoch

    def _check(self) -> None:
        self._fits_in = self._bus.claimed_epoch()
        try:
            found = misfit(self._bus.image(), self._settings)
        except CodecError as error:
            raise JobError(f"the state on {self._settings.bus_name} cannot be read: {error}") from error
        if found is not None:
            raise JobError(found)
