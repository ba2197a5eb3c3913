"""A reader of the committed records of one partition, up to an end that the caller names.

The problem: Kafka's consumer is an endless stream. The bus asks for the records before an offset, and must not
wait for more if there are none. But offsets have gaps, because markers of transactions and aborted records have offsets
too. So a reader cannot see from a record that it is the last one before an offset.

The insight: two offsets tell the difference. ``next_offset`` is the caller's place. ``_fetched_offset`` is how far the
client has come. The client passes gaps too, and says so at the end of the partition. If the client has come to the end
that the caller named, and no record before that end waits here, then there is none.

    offset       5    6    7    8    9    10   11
    record       a    b    -    c    d    -              - is a marker, or a record of an aborted transaction
    waiting           b         c    d
                      |                        |
                 next_offset            _fetched_offset          take(8) returns b, and take(11) then c and d

Errors come in the same stream. A read that fails keeps what came before the error, so the next read loses nothing. An
error may also be about the position before the last ``seek``, and is passed over then.

Rejected: to seek before each read. A seek waits for the fetch that is under way, and drops the records that wait here.
Most reads continue where the last one ended.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from bus.interface import BusError
from bus.kafka.connection import Connection, is_passing
from isrflow.kafka.limits import ANY_BYTES, FIRST_STEP_BACK, STEP_BACK_TIMES

_FETCH_AT_ONCE = 10_000
# A reader that follows a topic seeks only at a start, so a fetch may wait long. It fetches little ahead, because that
# is in memory together with a batch.
FOLLOWING = {
    "fetch.wait.max.ms": 500,
    "fetch.message.max.bytes": 1024 * 1024,
    "queued.max.messages.kbytes": 8 * 1024,
}


class Record(NamedTuple):
    """A record of a partition."""

    offset: int
    key: bytes
    value: bytes
    headers: dict[str, bytes]
    time_ms: int


class LogReader:
    """A position in a log, and the records from there on. Only one thread at a time may use it."""

    def __init__(self, connection: Connection, topic: str, partition: int = 0, **settings: Any) -> None:
        self._connection = connection
        self._topic = topic
        self._partition = partition
        self._consumer = connection.consumer(**settings)
        self._waiting: deque[Record] = deque()
        self.next_offset = -1
        self._fetched_offset = -1
        # Whether Kafka's client has given up, as it does where retention has removed records. Then only ``seek`` helps.
        self.is_lost = False

    def stands_at(self, offset: int) -> bool:
        """Return whether the next record is the first one from ``offset`` on."""
        return offset == self.next_offset and not self.is_lost

    def seek(self, offset: int) -> None:
        """Go to ``offset``."""
        if self.stands_at(offset):
            return
        self._waiting.clear()
        with self._connection.errors():
            self._consumer.assign([TopicPartition(self._topic, self._partition, offset)])
        self.next_offset = offset
        self._fetched_offset = offset
        self.is_lost = False

    def take(self, end: int, limit: int, bytes_max: int = ANY_BYTES) -> list[Record]:
        """Return up to ``limit`` records before the offset ``end``. Raises like ``peek``, and then stays where it was.

        The values of the records have at most ``bytes_max`` bytes together. The first record may have more.
        """
        begin, records = self.next_offset, list[Record]()
        left = bytes_max
        try:
            while len(records) < limit and (record := self.peek(end)) is not None:
                left -= len(record.value)
                if records and left < 0:
                    break
                self.skip()
                records.append(record)
        except BaseException:
            self.give_back(records, begin)
            raise
        return records

    def give_back(self, records: Sequence[Record], offset: int) -> None:
        """Go back to ``offset``. ``records`` are those that were read from there on."""
        self._waiting.extendleft(reversed(records))
        self.next_offset = offset

    def peek(self, end: int) -> Record | None:
        """Return the next record before the offset ``end`` and stay there. If there is none, go to ``end``.

        Raises ``BusError`` if nothing comes for the connection's ``timeout_s``.
        """
        while self.next_offset < end:
            if self._waiting:
                if self._waiting[0].offset < end:
                    return self._waiting[0]
                self.next_offset = end
            elif self._fetched_offset >= end:
                # Only markers of transactions are left.
                self.next_offset = end
            else:
                self._await_records()
        return None

    def skip(self) -> None:
        """Move past the record that ``peek`` returned."""
        self.next_offset = self._waiting.popleft().offset + 1

    def _await_records(self) -> None:
        deadline = time.monotonic() + self._connection.timeout_s
        while not self._fetch(0.5):
            if time.monotonic() > deadline:
                raise BusError(
                    f"bus {self._connection.address}: {self._topic} gave nothing after offset {self.next_offset} "
                    f"in {self._connection.timeout_s:.0f} s"
                )

    def has_more(self) -> bool:
        """Return whether records have come in. It waits for nothing."""
        return bool(self._waiting) or (self._fetch(0) and bool(self._waiting))

    def arrived(self) -> list[Record]:
        """Return the records that have come in since, and move past them. It waits for nothing."""
        self.has_more()
        records = list(self._waiting)
        self._waiting.clear()
        if records:
            self.next_offset = records[-1].offset + 1
        return records

    def _fetch(self, timeout_s: float) -> bool:
        """Collect what the client has fetched, and return whether the client's position has moved.

        Raises ``BusError`` after it has collected everything that came with the error.
        """
        first = self._consumer.poll(timeout_s)
        if first is None:
            return False
        before, failed = self._fetched_offset, None
        for message in [first, *self._consumer.consume(_FETCH_AT_ONCE, 0)]:
            error = message.error()
            if error is None:
                self._waiting.append(_record(message))
                self._fetched_offset = self._waiting[-1].offset + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                self._fetched_offset = max(self._fetched_offset, message.offset() or 0)
            elif not is_passing(error) and not self._is_of_a_former_position(error):
                failed = error
        if failed is not None:
            self.is_lost = True
            with self._connection.errors():
                raise KafkaException(failed)
        return self._fetched_offset > before

    def _is_of_a_former_position(self, error: KafkaError) -> bool:
        """Return whether ``error`` is about the position before the last ``seek``, which retention has removed.

        If the present position is outside the log too, the error may be about that one. The position is then before the
        log's start, or after its end if the topic was made again.
        """
        if error.code() != KafkaError._AUTO_OFFSET_RESET:
            return False
        start = self._connection.start_offset(self._topic, self._partition)
        return start <= self._fetched_offset <= self._connection.written_offset(self._topic, self._partition)

    def first_at(self, offset: int, end: int) -> Record | None:
        """Return the first record at ``offset`` or after it; None if there is none before ``end``."""
        self.seek(offset)
        return next(iter(self.take(end, 1)), None)

    def last(self, start: int, end: int) -> Record | None:
        """Return the last record between two offsets, and move past it."""
        back = FIRST_STEP_BACK
        while True:
            offset = max(start, end - back)
            self.seek(offset)
            found = self.take(end, back)
            if found or offset == start:
                return found[-1] if found else None
            back *= STEP_BACK_TIMES

    def seek_first(self, is_after: Callable[[Record], bool], start: int, end: int) -> None:
        """Go to the first record that ``is_after`` accepts, or to ``end``.

        ``is_after`` must accept all records after the first one that it accepts. The search starts near the end,
        because most readers are there.
        """
        low, high, back = start, end, FIRST_STEP_BACK
        while low < high:
            probe = max(low, end - back) if high > end - back else (low + high) // 2
            found = self.first_at(probe, end)
            if found is None or is_after(found):
                high = probe
                back *= STEP_BACK_TIMES
            else:
                low, back = found.offset + 1, 0
        self.seek(high)

    def close(self) -> None:
        self._consumer.close()


def _record(message: Message) -> Record:
    headers: Any = message.headers() or ()
    _, time_ms = message.timestamp()
    return Record(message.offset() or 0, message.key() or b"", message.value() or b"", dict(headers), time_ms)
