"""Transactions of the metadata log (KIP-868): their records count at the end, or never.

Kafka's first controller writes the records of a new cluster in one. A migration from ZooKeeper is one, too.
"""

from collections.abc import Iterator

from brokers.shadow.source import Batch


class Transactions:
    """Holds back the records of an open transaction."""

    def __init__(self) -> None:
        self._held: list[Batch] = []
        self._is_open = False

    @property
    def begins_at(self) -> int | None:
        """The offset at which the open transaction begins; None if none is open."""
        return self._held[0].base_offset if self._is_open else None

    def settled(self, batch: Batch) -> Iterator[Batch]:
        """Take the next batch, and yield what counts now, in order. An aborted transaction's records never come."""
        if batch.is_control and self._is_open:
            # A new leader's batch. It keeps its place.
            self._held.append(batch)
            return
        start = 0
        for place, record in enumerate(batch.records):
            match record.name:
                case "BeginTransactionRecord" if not self._is_open:
                    yield from _part(batch, start, place)
                    start, self._is_open = place, True
                case "EndTransactionRecord" if self._is_open:
                    yield from (*self._held, *_part(batch, start, place + 1))
                    self._held, self._is_open = [], False
                    start = place + 1
                case "AbortTransactionRecord" if self._is_open:
                    yield from self.dropped()
                    start = place + 1
                case _:
                    pass
        left = _part(batch, start, len(batch.records))
        if self._is_open:
            self._held += left
        else:
            yield from left

    def dropped(self) -> list[Batch]:
        """Drop the open transaction, and return what stood between its records."""
        left = [batch for batch in self._held if batch.is_control]
        self._held, self._is_open = [], False
        return left


def _part(batch: Batch, start: int, end: int) -> list[Batch]:
    if start >= end:
        return []
    if (start, end) == (0, len(batch.records)):
        return [batch]
    return [batch._replace(base_offset=batch.base_offset + start, records=batch.records[start:end])]
