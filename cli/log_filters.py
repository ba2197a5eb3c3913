"""What 'isrflow events' and 'isrflow decisions' share: options, filters, and the search for the end of a log."""

import sys
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import msgspec

from bus.interface import Bus

POLL_INTERVAL_S = 0.1
TAIL_MAX = 1_000_000
# A busy topic has far more of them than of all other decisions, so they are only printed if they are asked for.
WATERMARK = "high_watermark"
# How many seqs the first search goes back at least, and by which factor each further search goes back more.
SEQS_BACK = 5_000
_LONGER = 8

_T = TypeVar("_T")


class Selected(msgspec.Struct):
    """The fields of an event or a decision by which it is chosen. An event may have anything in them."""

    kind: Any = ""
    reason: Any = ""
    topic: Any = None
    # Settings name their entity.
    entity: Any = None
    name: Any = None
    # Requests and answers about several topics or partitions name them in rows.
    topics: Any = None
    partitions: Any = None
    results: Any = None

    def is_about(self, topic: str) -> bool:
        """Return whether the fields name a topic, one of its partitions or its settings."""
        if self.topic == topic or (self.entity == "topic" and self.name == topic):
            return True
        listed = [rows for rows in (self.topics, self.partitions, self.results) if isinstance(rows, list)]
        return any(isinstance(row, dict) and row.get("topic") == topic for rows in listed for row in rows)


selected = msgspec.json.Decoder(Selected)


class Wanted(NamedTuple):
    """Which events or decisions to print; an empty filter takes all."""

    kinds: tuple[str, ...] = ()
    topic: str | None = None
    reasons: tuple[str, ...] = ()

    def takes(self, body: bytes) -> bool:
        """Return whether every filter takes an event or a decision. An event may be any text."""
        if self == Wanted():
            return True
        try:
            found = selected.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        return (
            (found.kind in self.kinds if self.kinds else not (self.topic and found.kind == WATERMARK))
            and (self.topic is None or found.is_about(self.topic))
            and (not self.reasons or found.reason in self.reasons)
        )


def print_pages(pages: Iterable[list[_T]], limit: int | None, show: Callable[[list[_T]], None]) -> bool:
    """Print the items of pages up to a limit, and return whether there was any."""
    left = most = sys.maxsize if limit is None else limit
    for page in pages:
        some = page[:left]
        show(some)
        left -= len(some)
        if not left:
            break
    return left < most


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
