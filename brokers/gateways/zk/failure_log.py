"""A log of failures that does not fill up when an action fails twice a second."""

import structlog

# How often a failure is logged while its reason stays the same.
SAY_AGAIN_S = 60.0
logger = structlog.get_logger()


class FailureLog:
    """The log of one action that is repeated until it succeeds; ``event`` names its failure.

    The first failure, and each with a new reason, is logged at once. While the reason stays the same, one failure is
    logged every ``SAY_AGAIN_S``.
    """

    def __init__(self, event: str) -> None:
        self._event = event
        self._failures = 0
        # The reason that was logged last, and when; None if the action has succeeded since.
        self._why: str | None = None
        self._said_s = 0.0

    def failed(self, why: str, now_s: float) -> None:
        """Note a failure at ``now_s``, in seconds of a clock that never goes back."""
        self._failures += 1
        if why != self._why or now_s - self._said_s >= SAY_AGAIN_S:
            logger.error(self._event, why=why, failures=self._failures)
            self._why, self._said_s = why, now_s

    def succeeded(self) -> None:
        """Forget the failures so far: the next one is news."""
        self._failures, self._why = 0, None
