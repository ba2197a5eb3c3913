"""The end of a log."""

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeVar

from bus.interface import Bus

TAIL_MAX = 1_000_000
# How many seqs the first search goes back at least, and by which factor each further search goes back more.
SEQS_BACK = 5_000
_LONGER = 8

_T = TypeVar("_T")


def last_of(bus: Bus, between: Callable[[int, int], Iterable[_T]], after: int, through: int, count: int) -> list[_T]:
    """Return the last ``count`` items that ``between`` finds after the first of two seqs, through the second.

    Search near the end first, and go further back each time.
    """
    span = max(count, SEQS_BACK)
    while True:
        start = max(after, through - span)
        found = deque(between(start, through), maxlen=count)
        if len(found) == count or start == after:
            return list(found)
        span *= _LONGER
