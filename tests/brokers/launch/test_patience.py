"""A start is waited for longer while the process moves on, but not without end."""

from collections.abc import Callable

import pytest

from brokers.launch.patience import Patience

TIMEOUT_S = 180.0


def waited(moved: Callable[[float], object]) -> float:
    """Return how long a wait for what is never ready lasts. ``moved`` says by the time what has moved."""
    now_s = 1_000.0
    patience = Patience(TIMEOUT_S, lambda: moved(now_s - 1_000.0), lambda: now_s)
    while not patience.is_over():
        now_s += 0.5
    return patience.waited_s


@pytest.mark.parametrize(
    ("moved", "waits_s"),
    [
        (lambda after_s: 0, 180),
        (lambda after_s: min(after_s, 100), 180),
        (lambda after_s: min(after_s, 150), 210),
        (lambda after_s: min(after_s // 40, 10), 460),
        (lambda after_s: after_s // 110, 180),
        (lambda after_s: after_s, 720),
    ],
    ids=["never", "at first", "until shortly before", "slowly for long", "too slowly", "always"],
)
def test_a_wait_lasts_as_long_as_something_moves(moved: Callable[[float], object], waits_s: float) -> None:
    assert waited(moved) == pytest.approx(waits_s, abs=10)
