"""The claims on Kafka: the ``controller_started`` events that a mark names, because any program may write others."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from bus.kafka.connection import Connection
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark, decode_mark
from isrflow.kafka.seqs import seq_of
from state.found import Found, found_in


class Claims(NamedTuple):
    """The newest claims."""

    # The offsets of the claims among the events.
    offsets: frozenset[int] = frozenset()
    # What each claim found undecided.
    found: tuple[Found, ...] = ()
    # How far events were decided then.
    through: int = 0


def newest_claims(connection: Connection) -> Claims:
    """Return the newest claims, complete as far as events can be read now.

    A claim's event and its mark are one transaction, but its topics become readable one after the other. The mark was
    written before the event became readable. So wait until everything that is written now is committed or aborted.
    """
    topic = connection.address.controller
    mark = newest_mark(connection, topic, connection.await_committed(topic))
    return Claims(
        frozenset(offset for _, offset in mark.claims),
        tuple(Found(through, seq_of(offset), time_ms) for through, offset, time_ms in mark.found),
        mark.through,
    )


def newest_mark(connection: Connection, topic: str, end: int) -> Mark:
    """Return the mark that a topic ends with before the offset ``end``. The state's topic ends with one too."""
    with contextlib.closing(LogReader(connection, topic)) as reader:
        newest = reader.last(connection.start_offset(topic), end)
    return Mark() if newest is None else decode_mark(newest.value)


class FormerClaims:
    """What claims that are no longer in the mark have found, read from their events. Use it in one thread at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # All events were read with begin <= offset < next.
        self._begin = self._next = 0
        self._found: list[Found] = []

    def found(self, first: int, last_seq: int, end: int) -> list[Found]:
        """Return what claims found among the events from the offset ``first`` on, up to ``last_seq``.

        Only claims before the offset ``end`` are looked for. Once one says that ``last_seq`` is decided, no later one
        found any of these events. So most reads end far before ``end``.
        """
        if not self._begin <= first <= self._next:
            self._begin, self._next, self._found = first, first, []
        if self._next < end and not _is_complete(self._found, last_seq):
            self._read(last_seq, end)
        return self._found

    def _read(self, last_seq: int, end: int) -> None:
        found: list[Found] = []
        with contextlib.closing(LogReader(self._connection, self._connection.address.events)) as reader:
            reader.seek(self._next)
            while not _is_complete(found, last_seq) and (record := reader.peek(end)) is not None:
                reader.skip()
                found += found_in([(seq_of(record.offset), record.value, record.time_ms, None)])
            self._found += found
            self._next = reader.next_offset


def _is_complete(found: Sequence[Found], last_seq: int) -> bool:
    return bool(found) and found[-1].after >= last_seq
