"""Read the decisions of a bus on Kafka, starting at any place.

A record of the topic holds one decision, or a block of many on one event (``isrflow.decision_blocks``). Its key is the
place of the first one. A header names the decision before it, because retention may have removed that one:

    offset     key      previous   decisions
    40         7, 0     6, 1       7,0
    41         8, 0     7, 0       8,0 to 8,4095
    42         8, 4096  8, 4095    8,4096 to 8,5000

After decision (8, 100) a reader stands at offset 41, because that record has the next decision. Most reads go on where
the last one ended. Any other read begins with a search.
"""

import threading
from collections.abc import Callable, Iterator

from bus.interface import DECISIONS_BYTES_MAX, Decided, DecidedColumns, TrimmedError
from bus.kafka.connection import Connection
from bus.kafka.log_reader import LogReader, Record
from bus.kafka.mark import Mark
from isrflow.contract import Place
from isrflow.decision_blocks import last_of
from isrflow.decision_rows import RowReader, last_place
from isrflow.kafka.records import DECISION_KEY, PREVIOUS


class DecisionReader:
    """A reader of the topic of decisions. Threads take turns.

    ``newest_mark`` returns the newest mark that can be read.
    """

    def __init__(self, connection: Connection, newest_mark: Callable[[], Mark]) -> None:
        self._connection = connection
        self._topic = connection.address.decisions
        self._newest_mark = newest_mark
        self._log = LogReader(connection, self._topic)
        self._rows = RowReader(f"bus {connection.address}")
        # The place after which the log stands; None if it may stand anywhere.
        self._after: Place | None = None
        # The record at which the log stands, if only some of its decisions were returned.
        self._partly: Record | None = None
        # Held while reading, because each read moves the log.
        self._lock = threading.Lock()

    def decisions(self, after: Place, limit: int, bytes_max: int, *, passing_over: bool) -> list[Decided]:
        """Return up to ``limit`` decisions after a place (``Bus.decisions``)."""
        found: list[Decided] = []
        with self._lock:
            end = self._go_after(after, passing_over=passing_over)
            while len(found) < limit and (record := self._log.peek(end)) is not None:
                some = self._rows.after(_row(record), after, limit - len(found), bytes_max)
                bytes_max -= sum([len(one.body) for one in some])
                if found and bytes_max < 0:
                    break
                found += some
                if last_place(some[-1]) < _last_place(record):
                    self._partly = record
                    break
                self._log.skip()
            self._after = last_place(found[-1]) if found else after
        return found

    def columns(self, after: Place, limit: int) -> list[Decided | DecidedColumns]:
        """Return decisions after a place, with blocks of columns as they are (``Bus.decided_columns``)."""
        with self._lock:
            end = self._go_after(after, passing_over=False)
            found = self._rows.columns(self._whole_rows(end), after, limit, DECISIONS_BYTES_MAX)
            self._after = last_place(found[-1]) if found else after
        return found

    def _whole_rows(self, end: int) -> Iterator[Decided]:
        """Go through the records up to an offset, and past each one before it is given."""
        while (record := self._log.peek(end)) is not None:
            self._log.skip()
            yield _row(record)

    def _go_after(self, after: Place, *, passing_over: bool) -> int:
        """Go to the record that has the next decision after a place, and return the end of the topic."""
        end = self._connection.end_offset(self._topic)
        stays = self._stands_after(after)
        least = self._log.next_offset if stays else self._newest_mark().decisions_end
        if end < least:
            self._connection.check_written(self._topic, least)
        # If anything fails from here on, the next read searches.
        self._after = self._partly = None
        if not stays or self._log.is_lost:
            self._search(after, end, passing_over=passing_over)
        self._pass(after, end)
        return end

    def _stands_after(self, after: Place) -> bool:
        partly = self._partly
        return after == self._after or (partly is not None and _previous(partly) <= after < _last_place(partly))

    def _search(self, after: Place, end: int, *, passing_over: bool) -> None:
        start = self._connection.start_offset(self._topic)
        self._log.seek_first(lambda record: _last_place(record) > after, start, end)
        if start > 0 and after[0] > 0 and not passing_over:
            newest_gone = self._newest_gone(start, end)
            self._log.seek_first(lambda record: _last_place(record) > after, start, end)
            if after < newest_gone:
                raise TrimmedError(
                    f"bus {self._connection.address}: decisions up to {newest_gone} were removed: "
                    f"read on from {newest_gone[0] + 1}, or start from the current state"
                )

    def _pass(self, after: Place, end: int) -> None:
        """Skip records up to ``after`` that could not be read yet when the log went there.

        A commit's state may be readable before its decisions, and a follower starts after the state.
        """
        while (record := self._log.peek(end)) is not None and _last_place(record) <= after:
            self._log.skip()

    def newest_gone(self) -> Place:
        """Return the newest decision that retention has removed."""
        with self._lock:
            self._after = self._partly = None
            start = self._connection.start_offset(self._topic)
            return self._newest_gone(start, self._connection.end_offset(self._topic))

    def _newest_gone(self, start: int, end: int) -> Place:
        """Return the newest decision that was removed. The log may stand anywhere afterwards."""
        if start == 0:
            return 0, -1
        first = self._log.first_at(start, end)
        return self._newest_mark().last_decision if first is None else _previous(first)

    def changed(self) -> bool:
        """Return whether there may be decisions that have not been read yet."""
        if self._after is None:
            return True
        with self._lock:
            return self._log.has_more()

    def close(self) -> None:
        self._log.close()


def place_of(record: Record) -> Place:
    """Return the place of the first decision in a record."""
    seq, idx = DECISION_KEY.unpack(record.key)
    return seq, idx


def _last_place(record: Record) -> Place:
    return last_of(_row(record))


def _previous(record: Record) -> Place:
    """Return the place of the decision before a record's first one. That decision may have been removed."""
    seq, idx = DECISION_KEY.unpack(record.headers[PREVIOUS])
    return seq, idx


def _row(record: Record) -> Decided:
    return Decided(*place_of(record), record.value)
