"""Which brokers a gateway heard lately. Its heartbeats name them, and the rules choose the leader by them."""

from collections.abc import Collection

import structlog

from bus.clock import steady_ms

logger = structlog.get_logger()

# As many as a heartbeat may name.
HEARD_MAX = 1_000
# Brokers find a gateway that begins to lead within this many times ``leading_ms``.
FIND_TIMES = 3


class HeardBrokers:
    """When each broker was heard, which counts for ``leading_ms`` where the gateway leads, else for ``other_ms``."""

    def __init__(self, leading_ms: int, other_ms: int) -> None:
        self._leading_ms = leading_ms
        self._other_ms = other_ms
        self._heard_ms: dict[int, int] = {}
        self._led_since_ms = steady_ms()
        self._was_reached = False
        self._is_alone = False

    def hear(self, broker: int) -> None:
        """Note that a broker was heard just now."""
        if broker in self._heard_ms or len(self._heard_ms) < HEARD_MAX:
            self._heard_ms[broker] = steady_ms()

    def forgive(self, late_ms: int) -> None:
        """Do not count a time in which this process could hear no broker."""
        for broker in self._heard_ms:
            self._heard_ms[broker] += late_ms

    def lately(self, *, leads: bool) -> tuple[int, ...]:
        """Return the brokers that were heard lately, in rising order."""
        since_ms = steady_ms() - (self._leading_ms if leads else self._other_ms)
        # Copied, because measures are taken in another thread.
        return tuple(sorted(broker for broker, heard_ms in dict(self._heard_ms).items() if heard_ms > since_ms))

    def told(self, *, leads: bool, live: Collection[int]) -> tuple[int, ...]:
        """Return the brokers for a heartbeat, and log if this gateway leads and hears none of the ``live`` ones."""
        heard = self.lately(leads=leads)
        if not leads:
            self._led_since_ms, self._was_reached = steady_ms(), False
        self._was_reached |= leads and bool(heard)
        is_found = self._was_reached or steady_ms() - self._led_since_ms >= FIND_TIMES * self._leading_ms
        is_alone = leads and bool(live) and not heard and is_found
        if is_alone and not self._is_alone:
            hint = "can brokers reach its listener? Another gateway leads soon, if one is heard"
            logger.warning("this gateway leads, and hears no broker", live=sorted(live), hint=hint)
        elif self._is_alone and heard:
            logger.info("brokers are heard again", brokers=heard)
        self._is_alone = is_alone
        # The others are forgotten, so that there is room for new ones.
        kept = self.lately(leads=False)
        self._heard_ms = {broker: heard_ms for broker, heard_ms in self._heard_ms.items() if broker in kept}
        return heard
