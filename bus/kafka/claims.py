"""The claims on Kafka. Anybody may write ``controller_started`` events, so only those that a mark names are claims."""

import time
from typing import NamedTuple

from bus.interface import BusError
from bus.kafka.connection import RETRY_PAUSE_S, TRANSACTION_TIMEOUT_MS, Connection
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark, decode_mark
from isrflow.kafka.seqs import seq_of
from state.found import Found


class Claims(NamedTuple):
    """The newest claims."""

    # The offsets of the claims among the control events.
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
    end = connection.written_offset(topic)
    deadline = time.monotonic() + TRANSACTION_TIMEOUT_MS / 1000
    while connection.end_offset(topic) < end:
        if time.monotonic() > deadline:
            raise BusError(f"bus {connection.address}: a transaction on {topic} does not end")
        time.sleep(RETRY_PAUSE_S)
    marks = LogReader(connection, topic)
    try:
        newest = marks.last(connection.start_offset(topic), end)
    finally:
        marks.close()
    mark = Mark() if newest is None else decode_mark(newest.value)
    return Claims(
        frozenset(offset for _, offset in mark.claims),
        tuple(Found(through, seq_of(offset), time_ms) for through, offset, time_ms in mark.found),
        mark.through,
    )
