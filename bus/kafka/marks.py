"""The newest mark of a bus on Kafka, as far as this process knows it."""

import contextlib
import threading
import time

from bus.kafka.connection import RETRY_PAUSE_S, Connection
from bus.kafka.log_reader import LogReader
from bus.kafka.mark import Mark, decode_mark, newer
from isrflow.kafka.topic_end import LOST_END_TIMEOUT_S, lost_end


class Marks:
    """The reader of the controller topic. Several threads may use it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._topic = connection.address.controller
        self._marks: LogReader | None = None
        self._mark = Mark()
        # Held for a moment, so that threads which only ask who has claimed the bus do not wait for a transaction.
        self._marks_lock = threading.Lock()

    def mark(self) -> Mark:
        """Return the newest committed mark: this process's own at once, another's as soon as it can be read."""
        with self._marks_lock:
            end = self._connection.end_offset(self._topic)
            if self._marks is None:
                with contextlib.ExitStack() as stack:
                    reader = LogReader(self._connection, self._topic)
                    stack.callback(reader.close)
                    newest = reader.last(self._connection.start_offset(self._topic), end)
                    stack.pop_all()
                self._marks = reader
            else:
                newest = next(reversed(self._marks.take(end, end)), None)
            if newest is not None:
                self._mark = newer(self._mark, decode_mark(newest.value))
            return self._mark

    def _note(self, mark: Mark) -> None:
        """Remember a mark that this process has committed."""
        with self._marks_lock:
            self._mark = newer(self._mark, mark)

    def check_not_behind(self, committed: Mark) -> None:
        """Raise ``BusError`` if the newest mark stays older than ``committed``, which came with a state.

        A claim would take an epoch a second time, and a reader would take old decisions for the newest ones.
        """
        deadline = time.monotonic() + LOST_END_TIMEOUT_S
        while newer(mark := self.mark(), committed) is not mark:
            if time.monotonic() > deadline:
                raise lost_end(
                    self._connection.address,
                    self._topic,
                    f"ends with controller epoch {mark.controller_epoch} and seq {mark.through}, "
                    f"but the state is of epoch {committed.controller_epoch} and seq {committed.through}",
                )
            # The topics of a transaction become readable one after the other.
            self._connection.await_committed(self._topic)
            time.sleep(RETRY_PAUSE_S)
            self._connection.look_up(self._topic)

    def close(self) -> None:
        with self._marks_lock:
            if self._marks is not None:
                self._marks.close()
                self._marks = None
