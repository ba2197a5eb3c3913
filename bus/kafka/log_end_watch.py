"""Whether brokers report log ends, in which case an engine ticks faster."""

from bus.kafka.connection import Connection
from bus.kafka.log_reader import FOLLOWING, LogReader
from isrflow.contract import LOG_END_OFFSET
from isrflow.kafka.seqs import offset_after, seq_of

_REPORT = LOG_END_OFFSET.encode()


class LogEndWatch:
    """A reader that follows the events topic and never waits. Only one thread at a time may use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reader: LogReader | None = None
        self._newest = 0

    def came(self, after: int) -> bool:
        """Return whether a report after ``after`` has arrived here. It arrives a moment after it was published."""
        topic = self._connection.address.events
        if self._reader is None:
            self._reader = LogReader(self._connection, topic, **FOLLOWING)
        if self._reader.next_offset < 0 or self._reader.is_lost:
            self._reader.seek(max(offset_after(after), self._connection.start_offset(topic)))
        for record in self._reader.arrived():
            if _REPORT in record.value:
                self._newest = seq_of(record.offset)
        return self._newest > after

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None
