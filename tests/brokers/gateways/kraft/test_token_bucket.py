"""Kafka's token bucket: what may be taken at once, and how long its debt lasts."""

import pytest

from brokers.gateways.kraft.mutation_quotas import BURST_S, TokenBucket

INT_MAX = 2**31 - 1


def test_a_new_bucket_has_the_tokens_of_eleven_seconds() -> None:
    bucket = TokenBucket()
    bucket.take(5 * BURST_S, 5.0, 100.0)
    assert bucket.wait_ms(5.0, 100.0) == 0, "no token is left, and none is owed"
    bucket.take(1, 5.0, 100.0)
    assert bucket.wait_ms(5.0, 100.0) == 200


def test_what_is_owed_comes_at_the_rate() -> None:
    """As in Kafka's own example: 60 too many at five per second take twelve seconds."""
    bucket = TokenBucket()
    bucket.take(5 * BURST_S + 60, 5.0, 0.0)
    assert [bucket.wait_ms(5.0, now) for now in (0.0, 6.0, 11.5, 12.0, 13.0)] == [12_000, 6_000, 500, 0, 0]


def test_tokens_are_saved_for_eleven_seconds_and_no_longer() -> None:
    bucket = TokenBucket()
    bucket.take(BURST_S, 1.0, 0.0)
    bucket.take(BURST_S + 1, 1.0, 1_000_000.0)
    assert bucket.wait_ms(1.0, 1_000_000.0) == 1_000


def test_tokens_that_are_given_back_can_be_taken_again_and_are_no_more_than_the_burst() -> None:
    bucket = TokenBucket()
    bucket.take(100, 1.0, 0.0)
    bucket.take(-100, 1.0, 0.0)
    assert bucket.wait_ms(1.0, 0.0) == 0
    bucket.take(-100, 1.0, 0.0)
    bucket.take(BURST_S + 1, 1.0, 0.0)
    assert bucket.wait_ms(1.0, 0.0) == 1_000


def test_a_changed_rate_counts_from_then_on() -> None:
    bucket = TokenBucket()
    bucket.take(BURST_S + 10, 1.0, 0.0)
    assert bucket.wait_ms(1.0, 0.0) == 10_000
    assert bucket.wait_ms(100.0, 0.0) == 100


@pytest.mark.parametrize("rate", [1e-300, 5e-324])
def test_a_wait_fits_into_a_response(rate: float) -> None:
    bucket = TokenBucket()
    bucket.take(10_000, rate, 0.0)
    assert bucket.wait_ms(rate, 1.0) == INT_MAX


def test_a_huge_rate_never_makes_anybody_wait() -> None:
    bucket = TokenBucket()
    for now in range(3):
        bucket.take(10_000, 1e308, float(now))
        assert bucket.wait_ms(1e308, float(now)) == 0
