"""Records that a client has read from the topic of decisions, and whose decisions it has not returned yet."""

from typing import NamedTuple

from isrflow.contract import Decided, Place
from isrflow.decision_blocks import last_of
from isrflow.decision_rows import RowReader


class DecisionRecord(NamedTuple):
    """One decision, or a block of many on one event."""

    row: Decided
    # The place of the decision before its first one.
    previous: Place
    offset: int

    @property
    def last(self) -> Place:
        """The place of its last decision."""
        return last_of(self.row)


class ReadAhead:
    """The records in order. ``bus`` is named in errors."""

    def __init__(self, bus: str) -> None:
        self.records: list[DecisionRecord] = []
        self._rows = RowReader(bus)

    def has_any_after(self, place: Place) -> bool:
        """Return whether a decision after a place is among them."""
        return bool(self.records) and self.records[-1].last > place

    def take(self, after: Place, limit: int, bytes_max: int) -> list[Decided]:
        """Return up to ``limit`` decisions after a place, and drop the records that are used up.

        They have at most ``bytes_max`` bytes in total, except that the last one may exceed it. Raises
        ``DamagedError``.
        """
        found: list[Decided] = []
        used = 0
        for record in self.records:
            last = record.last
            if last > after:
                some = self._rows.after(record.row, after, limit - len(found), bytes_max)
                found += some
                bytes_max -= sum([len(one.body) for one in some])
                if (some[-1].seq, some[-1].idx) < last:
                    break
            used += 1
            if len(found) == limit or bytes_max <= 0:
                break
        del self.records[:used]
        return found
