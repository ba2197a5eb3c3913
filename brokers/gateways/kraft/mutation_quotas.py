"""The quota ``controller_mutation_rate``: how many partitions per second a client may create and delete (KIP-599).

In Kafka the controller that leads keeps it, in memory, and so does the gateway that leads. Another one that leads
starts with full buckets.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from brokers.gateways.kraft.token_bucket import TokenBucket
from state.entity import Entity, entity_id_of

KEY = "controller_mutation_rate"
# How many clients' buckets are kept. The one that was not used for longest is dropped, and is full when it is back.
BUCKETS_MAX = 1_000

Clock = Callable[[], float]


class Limit(NamedTuple):
    """The quota of a client: who shares it, and how many tokens come per second."""

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


class Quota:
    """What one client may still change, while one of its requests is served."""

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
        # The one that was not used for longest comes first.
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
