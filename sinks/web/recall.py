"""The newest decisions on a bus.

A bus can only be read forwards. So the search reads stretches of events, the newest stretch first.
"""

import time
from collections.abc import Callable

from bus.interface import AFTER_ALL_OF, Bus
from sinks.web.seen import Seen, seen

# The most events that are looked at.
EVENTS_MAX = 20_000
# One search reads at most this many parts of the bus, each with up to this many decisions and bytes.
PARTS_MAX = 50
PART_DECISIONS = 2_000
PART_BYTES = 1024 * 1024
# Each stretch has this many times as many events as the later one, until a stretch has too many decisions.
GROWTH = 8

SeenOnes = list[tuple[Seen, bytes]]


class Recall:
    """One search for the newest decisions."""

    def __init__(self, bus: Bus, rest: Callable[[float], bool]) -> None:
        """Search ``bus``. After each part, ``rest`` gets the thread's time in s before it; True ends the search."""
        self._bus = bus
        self._rest = rest
        self._parts_left = PARTS_MAX
        self._is_stopped = False

    def newest(self, after: int, through: int) -> SeenOnes:
        """Return the newest decisions on events after the seq ``after``, through another one, oldest first.

        If one event alone has more decisions than may be read, its first ones are returned. Raises ``BusError``.
        """
        stretches: list[SeenOnes] = []
        after = max(after, through - EVENTS_MAX)
        events, growth = 1, GROWTH
        while after < through and self._parts_left and not self._is_stopped:
            begin = max(after, through - events)
            found, parts, is_whole = self._read(begin, through)
            if is_whole or (events == 1 and self._parts_left == PARTS_MAX):
                stretches.append(found)
                self._parts_left -= parts
                through, events = begin, events * growth
            elif events == 1:
                break
            else:
                events, growth = events // GROWTH, 1
        return [one for stretch in reversed(stretches) for one in stretch]

    def _read(self, after: int, through: int) -> tuple[SeenOnes, int, bool]:
        """Read a stretch. Return what was found, the number of parts read, and whether that is the whole stretch."""
        found: SeenOnes = []
        place = (after, AFTER_ALL_OF)
        for part in range(self._parts_left):
            began_s = time.thread_time()
            page = self._bus.decisions(place, PART_DECISIONS, PART_BYTES, passing_over=True)
            found += seen(one for one in page if one.seq <= through)
            if not page or page[-1].seq > through:
                return found, part + bool(page and page[0].seq <= through), True
            place = (page[-1].seq, page[-1].idx)
            if self._rest(began_s):
                self._is_stopped = True
                break
        return found, self._parts_left, False
