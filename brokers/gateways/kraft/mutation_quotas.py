"""The quota ``controller_mutation_rate``: how many partitions per second a client may create and delete (KIP-599).

As in Kafka, the leader keeps the buckets in memory. A gateway that begins to lead starts with full ones.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from state.entity import Entity, entity_id_of

KEY = "controller_mutation_rate"
# ``controller.quota.window.num`` windows of ``controller.quota.window.size.seconds`` by default: what may come at once.
BURST_S = 11.0
_INT_MAX = 2**31 - 1
# How many clients' buckets are kept. The least recently used one is dropped, and is full when it is back.
BUCKETS_MAX = 1_000

Clock = Callable[[], float]


class Limit(NamedTuple):
    """The quota of a client: the clients that share it, and how many tokens come per second."""

    # The user and the client-id; an empty one does not count.
    shared_by: tuple[str, str]
    rate: float


def limit_of(entities: Mapping[str, Entity], user: str, client_id: str) -> Limit | None:
    """Return the most specific quota that fits a client, or None if there is none (``ClientQuotaManager``)."""
    for names, shared_by in _levels(user, client_id):
        held = entities.get(entity_id_of("client_quota", names))
        if held is not None and KEY in held.values:
            return Limit(shared_by, float(held.values[KEY]))
    return None


def _levels(user: str, client_id: str) -> Iterator[tuple[dict[str, str | None], tuple[str, str]]]:
    """Yield what a quota may be set for, with the client's part in it, in Kafka's order. None is a default."""
    for part in (user, None) if user else ():
        if client_id:
            yield {"user": part, "client-id": client_id}, (user, client_id)
            yield {"user": part, "client-id": None}, (user, client_id)
        yield {"user": part}, (user, "")
    for other in (client_id, None) if client_id else ():
        yield {"client-id": other}, ("", client_id)


class TokenBucket:
    """Kafka's bucket: tokens that come at a rate of so many per second, up to those of ``BURST_S`` seconds.

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


class Quota:
    """The changes that one client may still make, while one of its requests is served."""

    def __init__(self, bucket: TokenBucket, rate: float, clock: Clock) -> None:
        self._bucket = bucket
        self._rate = rate
        self._clock = clock

    def take(self, partitions: int) -> None:
        """Count changed partitions; a negative number takes some back."""
        self._bucket.take(partitions, self._rate, self._clock())

    def wait_ms(self) -> int:
        """Return for how long the quota is exceeded; 0 if it is not."""
        return self._bucket.wait_ms(self._rate, self._clock())


class MutationQuotas:
    """The buckets of all clients that have the quota. ``clock`` gives seconds, and never goes back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # The least recently used one comes first.
        self._buckets: dict[tuple[str, str], TokenBucket] = {}

    def quota_of(self, entities: Mapping[str, Entity], principal: str, client_id: str | None) -> Quota | None:
        """Return a client's quota, or None if it has none. Only the principal's name counts, not its type."""
        limit = limit_of(entities, principal.partition(":")[2], client_id or "")
        if limit is None:
            return None
        bucket = self._buckets.pop(limit.shared_by, None)
        if bucket is None:
            bucket = TokenBucket()
            if len(self._buckets) >= BUCKETS_MAX:
                del self._buckets[next(iter(self._buckets))]
        self._buckets[limit.shared_by] = bucket
        return Quota(bucket, limit.rate, self._clock)
