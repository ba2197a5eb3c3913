"""Read the state of a bus on Kafka: its pages, and the mark that says up to which event they are."""

import time

from bus.interface import BusError
from bus.kafka.connection import REQUEST_TIMEOUT_S, RETRY_PAUSE_S, Connection
from bus.kafka.controller import MARK_KEY, PageKey, page_of
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark, decode_mark
from bus.kafka.topics import READ_WHOLE_TIMEOUT_MS


def read_state(connection: Connection, newest: Mark) -> tuple[Mark, dict[PageKey, bytes]]:
    """Return the state's mark, and each page or piece of one, once they are at least as new as ``newest``.

    The topics of a transaction become readable one after the other. A job that starts from an older state than it has
    committed would read the reports again with other seqs, and decide otherwise than before. Raises ``BusError``.
    """
    topic = connection.address.state
    mark, pages = Mark(), dict[PageKey, bytes]()
    reader = LogReader(connection, topic)
    began_s = time.monotonic()
    try:
        reader.seek(connection.start_offset(topic))
        # Compaction may replace a page by a newer one after the end. So read until the end stays where it is.
        while reader.next_offset < (end := connection.end_offset(topic)) or not _has(mark, newest):
            if time.monotonic() > began_s + READ_WHOLE_TIMEOUT_MS / 1000:
                raise BusError(
                    f"bus {connection.address}: the state changes faster than it can be read: "
                    f"its end was not reached in {READ_WHOLE_TIMEOUT_MS / 1000:.0f} s"
                )
            if reader.next_offset >= end:
                if time.monotonic() > began_s + REQUEST_TIMEOUT_S:
                    raise BusError(
                        f"bus {connection.address}: the state at seq {newest.through} cannot be read in "
                        f"{REQUEST_TIMEOUT_S:.0f} s: {topic} ends with the state at seq {mark.through}"
                    )
                time.sleep(RETRY_PAUSE_S)
            # One by one, because compaction leaves many versions of a page in the topic for a while.
            while (record := reader.peek(end)) is not None:
                reader.skip()
                if record.key == MARK_KEY:
                    mark = decode_mark(record.value)
                elif record.value:
                    pages[page_of(record.key)] = record.value
                else:
                    pages.pop(page_of(record.key), None)
    finally:
        reader.close()
    return mark, pages


def _has(mark: Mark, newest: Mark) -> bool:
    """Say whether the state of ``mark`` contains what is decided at ``newest``. Claims change no state."""
    return mark.through >= newest.through and mark.layouts >= newest.layouts
