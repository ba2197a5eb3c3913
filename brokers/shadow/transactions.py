"""Transactions of the metadata log (KIP-868): their records count at the end, or never.

Kafka's first controller writes the records of a new cluster in one. A migration from ZooKeeper is one, too. One that
has more than may be held counts as a gap, if it ends.
"""

from collections.abc import Iterator, Sequence

from brokers.shadow.source import Batch, Gap

# A migration of a million partitions fits.
RECORDS_MAX, BYTES_MAX = 2_000_000, 256 << 20


class Transactions:
    """Holds back the records of an open transaction, up to ``records_max`` of at most ``bytes_max`` bytes."""

    def __init__(self, records_max: int = RECORDS_MAX, bytes_max: int = BYTES_MAX) -> None:
        self._records_max, self._bytes_max = records_max, bytes_max
        # The offset at which the open transaction begins; None if none is open.
        self.begins_at: int | None = None
        self._held: list[Batch] = []
        self._records = self._bytes = 0

    @property
    def _is_too_large(self) -> bool:
        return self._records > self._records_max or self._bytes > self._bytes_max

    def settled(self, batch: Batch) -> Iterator[Batch | Gap]:
        """Take the next batch, and yield what counts now, in order. An aborted transaction's records never come."""
        if batch.is_control and self.begins_at is not None:
            # A new leader's batch. It keeps its place.
            yield from self._hold([batch])
            return
        start = 0
        for place, record in enumerate(batch.records):
            begins_at = self.begins_at
            match record.name:
                case "BeginTransactionRecord" if begins_at is None:
                    yield from _part(batch, start, place)
                    start, self.begins_at = place, batch.base_offset + place
                case "EndTransactionRecord" if begins_at is not None:
                    yield from self._ended(begins_at, _part(batch, start, place + 1), batch.base_offset + place + 1)
                    start = place + 1
                case "AbortTransactionRecord" if begins_at is not None:
                    yield from self.dropped()
                    start = place + 1
                case _:
                    pass
        left = _part(batch, start, len(batch.records))
        yield from left if self.begins_at is None else self._hold(left)

    def dropped(self) -> list[Batch]:
        """Drop the open transaction, and return what stood between its records."""
        left = [batch for batch in self._held if batch.is_control]
        self._held, self.begins_at, self._records, self._bytes = [], None, 0, 0
        return left

    def _hold(self, batches: Sequence[Batch]) -> Iterator[Batch]:
        """Hold batches back. Of a transaction that is too large, only its length is kept."""
        self._records += sum(len(batch.records) for batch in batches)
        self._bytes += sum(batch.size for batch in batches)
        self._held += batches
        if self._is_too_large:
            held, self._held = self._held, []
            yield from (batch for batch in held if batch.is_control)

    def _ended(self, begins_at: int, last: Sequence[Batch], end: int) -> Iterator[Batch | Gap]:
        yield from self._hold(last)
        held, is_too_large = self._held, self._is_too_large
        self.dropped()
        if is_too_large:
            limits = f"{self._records_max} records or {self._bytes_max} bytes"
            yield Gap(begins_at, end, f"they are a transaction of more than {limits}, which is not read")
        yield from held


def _part(batch: Batch, start: int, end: int) -> list[Batch]:
    count = len(batch.records)
    if start >= end:
        return []
    if (start, end) == (0, count):
        return [batch]
    size = batch.size * (end - start) // count
    return [batch._replace(base_offset=batch.base_offset + start, records=batch.records[start:end], size=size)]
