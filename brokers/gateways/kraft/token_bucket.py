"""Kafka's bucket of tokens for quotas that come in bursts (KIP-599; ``TokenBucket``)."""

import math

# ``controller.quota.window.num`` windows of ``controller.quota.window.size.seconds`` by default: what may come at once.
BURST_S = 11.0
_INT_MAX = 2**31 - 1


class TokenBucket:
    """Tokens that come at a rate of so many per second, up to those of ``BURST_S`` seconds.

    More may be taken than there are. Then the tokens are below zero until enough have come. The rate is given each
    time, because an admin may change it. A new bucket is full.
    """

    def __init__(self) -> None:
        # ≤ BURST_S * rate from the first use on.
        self._tokens = math.inf
        self._filled_s = -math.inf

    def take(self, count: float, rate: float, now_s: float) -> None:
        """Take ``count`` tokens; a negative count gives some back."""
        self._fill(rate, now_s)
        self._tokens = min(self._tokens - count, BURST_S * rate)

    def wait_ms(self, rate: float, now_s: float) -> int:
        """Return how long it takes until the tokens are no longer below zero; 0 if they are not."""
        self._fill(rate, now_s)
        # As Kafka's responses carry it, in 32 bits.
        return math.ceil(min(max(0.0, -self._tokens) / rate * 1000, _INT_MAX))

    def _fill(self, rate: float, now_s: float) -> None:
        if now_s > self._filled_s:
            self._tokens = min(self._tokens + rate * (now_s - self._filled_s), BURST_S * rate)
            self._filled_s = now_s
