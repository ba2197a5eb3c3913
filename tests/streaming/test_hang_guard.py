"""The guard that ends a job that must end and hangs; without Spark."""

import threading

from streaming.hang_guard import HangGuard
from tests.support.waiting import TIMEOUT_S


def test_a_job_that_must_end_and_does_not_is_broken_off() -> None:
    asked, killed = threading.Event(), threading.Event()
    with HangGuard(asked.is_set, killed.set, timeout_s=0.01) as guard:
        asked.set()
        assert killed.wait(TIMEOUT_S)
        guard.join(TIMEOUT_S)
        assert not guard.is_alive()


def test_a_job_that_must_not_end_may_take_as_long_as_it_likes() -> None:
    looks = iter([True, False] * 50)
    looked, killed = threading.Event(), threading.Event()

    def must_end() -> bool:
        if (look := next(looks, None)) is None:
            looked.set()
        return bool(look)

    with HangGuard(must_end, killed.set, timeout_s=0.001) as guard:
        assert looked.wait(TIMEOUT_S)
    guard.join(TIMEOUT_S)
    assert not guard.is_alive()
    assert not killed.is_set(), "each time it was only for a moment"
