"""Check that a job's settings fit the layout of the state, before its first claim and after each one."""

import structlog

from bus.interface import Bus, Claim, Image
from conf.layers import SettingsError
from conf.settings import Settings
from state.stored.codec import CodecError, LevelError
from streaming.job_errors import JobError
from streaming.layout import misfit
from streaming.reshard import lay_out_again

logger = structlog.get_logger("isrflow.job")


class LayoutCheck:
    """The check of shards and pages, when this is made and after each claim.

    ``isrflow reshard`` may run between two checks. It claims before it changes the layout. So if the job's claim is the
    first one since the last check, the layout is still the same, and the state need not be read again.

    With ``reshards`` a state that does not fit is laid out again after the claim. Otherwise it is a ``SettingsError``.
    """

    def __init__(self, bus: Bus, settings: Settings, *, reshards: bool = False) -> None:
        self._bus = bus
        self._settings = settings
        self._reshards = reshards
        # The newest epoch in which the layout was found to fit; None if it does not fit yet.
        self._fits_in: int | None = bus.claimed_epoch()
        if self._is_misfit(bus.image()):
            self._fits_in = None

    @property
    def fits(self) -> bool:
        """Whether the settings fitted the layout when that was last checked."""
        return self._fits_in is not None

    def claimed(self, claim: Claim) -> None:
        """Check again if another job has claimed since. Raises ``FencedError`` if one claims now."""
        if self._fits_in is None or claim.controller_epoch != self._fits_in + 1:
            image = self._bus.image()
            if self._is_misfit(image):
                self._lay_out_again(image, claim)
        self._fits_in = claim.controller_epoch

    def _lay_out_again(self, image: Image, claim: Claim) -> None:
        done = lay_out_again(self._bus, image, self._settings, claim.controller_epoch)
        logger.info(
            "laid the state out again",
            topics=done.topics,
            shards_before=done.shards_before,
            shards=self._settings.shards,
            pages=self._settings.pages,
        )

    def _is_misfit(self, image: Image) -> bool:
        """Return whether the state has another layout. Raises ``SettingsError`` if this job may not change that."""
        try:
            found = misfit(image, self._settings)
        except LevelError:
            raise
        except CodecError as error:
            raise JobError(f"the state on {self._settings.bus_name} cannot be read: {error}") from error
        if found is not None and not self._reshards:
            raise SettingsError(found)
        return found is not None
