"""Which quota on created and deleted partitions fits a client, and which clients share it."""

import pytest

from brokers.gateways.kraft.mutation_quotas import BUCKETS_MAX, KEY, Limit, MutationQuotas, limit_of
from state.entity import Entity, entity_id_of

# The most specific one comes first, with the client's part that shares it (``ClientQuotaManager``).
LEVELS: list[tuple[dict[str, str | None], tuple[str, str]]] = [
    ({"user": "bob", "client-id": "c"}, ("bob", "c")),
    ({"user": "bob", "client-id": None}, ("bob", "c")),
    ({"user": "bob"}, ("bob", "")),
    ({"user": None, "client-id": "c"}, ("bob", "c")),
    ({"user": None, "client-id": None}, ("bob", "c")),
    ({"user": None}, ("bob", "")),
    ({"client-id": "c"}, ("", "c")),
    ({"client-id": None}, ("", "c")),
]


def entities(*quotas: tuple[dict[str, str | None], float], key: str = KEY) -> dict[str, Entity]:
    return {
        entity_id_of("client_quota", names): Entity(
            entity_type="client_quota", names=names, values={key: repr(float(rate))}
        )
        for names, rate in quotas
    }


@pytest.mark.parametrize("first", range(len(LEVELS)))
def test_the_most_specific_quota_counts(first: int) -> None:
    held = entities(*((names, rate) for rate, (names, _) in enumerate(LEVELS) if rate >= first))
    assert limit_of(held, "bob", "c") == Limit(LEVELS[first][1], float(first))


def test_other_clients_and_other_quotas_do_not_count() -> None:
    others: list[dict[str, str | None]] = [{"user": "eve"}, {"user": "bob", "client-id": "d"}, {"client-id": "d"}]
    assert limit_of(entities(*((names, 1.0) for names in others)), "bob", "c") is None
    every = entities(*((names, 1.0) for names, _ in LEVELS), key="producer_byte_rate")
    assert limit_of(every, "bob", "c") is None


def test_a_client_without_an_id_or_a_user_has_the_quotas_of_what_it_has() -> None:
    held = entities(*((names, rate) for rate, (names, _) in enumerate(LEVELS)))
    assert limit_of(held, "bob", "") == Limit(("bob", ""), 2.0)
    assert limit_of(held, "", "c") == Limit(("", "c"), 6.0)
    assert limit_of(held, "", "") is None


def test_clients_of_a_user_share_its_quota_and_users_do_not_share_the_default() -> None:
    quotas = MutationQuotas(lambda: 0.0)
    held = entities(({"user": None}, 1.0))

    def wait_ms(principal: str, client_id: str | None) -> int:
        quota = quotas.quota_of(held, principal, client_id)
        assert quota is not None
        return quota.wait_ms()

    taken = quotas.quota_of(held, "User:bob", "c")
    assert taken is not None
    taken.take(12)
    assert wait_ms("User:bob", "d") == wait_ms("User:bob", None) == 1_000
    assert wait_ms("User:eve", "c") == 0
    assert quotas.quota_of({}, "User:bob", "c") is None


def test_the_bucket_that_was_not_used_for_longest_is_dropped() -> None:
    quotas = MutationQuotas(lambda: 0.0)
    held = entities(({"user": None}, 1.0))

    def wait_ms(number: int, take: int) -> int:
        quota = quotas.quota_of(held, f"User:{number}", "c")
        assert quota is not None
        quota.take(take)
        return quota.wait_ms()

    for number in range(BUCKETS_MAX):
        assert wait_ms(number, 12) == 1_000
    assert wait_ms(0, 0) == 1_000
    assert wait_ms(BUCKETS_MAX, 0) == 0
    assert wait_ms(0, 0) == 1_000
    assert wait_ms(1, 0) == 0, "it was dropped"
