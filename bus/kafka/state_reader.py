"""The state of a bus on Kafka: its pages under their keys, and the mark that says up to which event they are."""

import contextlib
import struct
import time

from bus.interface import BusError, Page
from bus.kafka.connection import RETRY_PAUSE_S, Connection
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark, decode_mark
from bus.kafka.topics import READ_WHOLE_TIMEOUT_MS
from isrflow.kafka.limits import REQUEST_TIMEOUT_S

MARK_KEY = b"mark"
# The shard and the number of a page, or of a piece of one.
PageKey = tuple[int, int]
_PAGE_KEY = struct.Struct(">ii")
_PIECE_KEY = struct.Struct(">iq")
_PAGE_MAX = 2**31 - 1


def read_state(connection: Connection, newest: Mark) -> tuple[Mark, dict[PageKey, bytes]]:
    """Return the state's mark, and each page or piece of one, once they are at least as new as ``newest``.

    Raises ``BusError``.
    """
    with contextlib.closing(StateReader(connection)) as reader:
        return reader.read_to_end(newest), reader.take()


class StateReader:
    """A place in the state's topic, and the pages and pieces that were read since they were last taken."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._topic = connection.address.state
        start = connection.start_offset(self._topic)
        self._reader = LogReader(connection, self._topic)
        self._reader.seek(start)
        self._mark = Mark()
        self._pages: dict[PageKey, bytes] = {}

    def read_to_end(self, newest: Mark) -> Mark:
        """Read until the state is at least as new as ``newest``, and return its mark. Raises ``BusError``.

        The topics of a transaction become readable one after the other. A job that started from an older state than the
        last commit's would decide events again.
        """
        began_s = time.monotonic()
        # Compaction may replace a page by a newer one behind the end. So read until the end stays where it is.
        while self._reader.next_offset < (end := self._connection.end_offset(self._topic)) or not self._has(newest):
            if time.monotonic() > began_s + READ_WHOLE_TIMEOUT_MS / 1000:
                raise BusError(
                    f"bus {self._connection.address}: the state changes faster than it can be read: "
                    f"its end was not reached in {READ_WHOLE_TIMEOUT_MS / 1000:.0f} s"
                )
            if self._reader.next_offset >= end:
                if time.monotonic() > began_s + REQUEST_TIMEOUT_S:
                    raise BusError(
                        f"bus {self._connection.address}: the state at seq {newest.through} cannot be read in "
                        f"{REQUEST_TIMEOUT_S:.0f} s: {self._topic} ends with the state at seq {self._mark.through}"
                    )
                time.sleep(RETRY_PAUSE_S)
            self._read(end)
        return self._mark

    def _has(self, newest: Mark) -> bool:
        """Return whether the state contains what is decided at ``newest``. Claims change no state."""
        return self._mark.through >= newest.through and self._mark.layouts >= newest.layouts

    def _read(self, end: int) -> None:
        # One by one, because compaction leaves many versions of a page in the topic for a while.
        while (record := self._reader.peek(end)) is not None:
            self._reader.skip()
            if record.key == MARK_KEY:
                self._mark = decode_mark(record.value)
            elif record.value:
                self._pages[page_of(record.key)] = record.value
            else:
                self._pages.pop(page_of(record.key), None)

    def take(self) -> dict[PageKey, bytes]:
        """Return what was read since the last call, the newest version of each page or piece."""
        taken, self._pages = self._pages, {}
        return taken

    def close(self) -> None:
        self._reader.close()


def key_of(page: Page) -> bytes:
    """Return the key of a page or a piece. The pieces after a page's first one have longer keys."""
    key = _PAGE_KEY if page.page <= _PAGE_MAX else _PIECE_KEY
    return key.pack(page.shard, page.page)


def page_of(key: bytes) -> PageKey:
    """Return the shard and the number of the page with this key."""
    shard, page = (_PAGE_KEY if len(key) == _PAGE_KEY.size else _PIECE_KEY).unpack(key)
    return shard, page
