"""The log file of a controller, which says in words why a broker was fenced. It is read on as it grows.

Kafka's messages are the same from 3.9 to 4.2, except that 3.9 does not name the broker's epoch. Kafka's own layout of a
line begins with the local time in brackets: ``[2026-03-01 12:00:00,000] INFO ...``.
"""

import os
import re
import time
from collections import deque
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple

from bus.clock import now_ms

# What is read of a file that has been there before, from its end.
HISTORY_BYTES = 8 << 20
# What is read at once. A log that grows faster loses its older lines.
READ_BYTES_MAX = 8 << 20
LINE_BYTES_MAX = 64 << 10
SAYINGS_MAX = 10_000
# How long before a batch's time, and after it, the controller may have said why.
EARLIER_MS, LATER_MS = 5_000, 2_000
_TIME = re.compile(rb"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\]")


class Reason(StrEnum):
    """What a controller says about a broker."""

    session = "session"
    immediate_shutdown = "immediate_shutdown"
    controlled_shutdown = "controlled_shutdown"
    shutdown_granted = "shutdown_granted"


_MESSAGES = {
    Reason.session: re.compile(
        rb"Fencing broker (?P<broker>\d{1,10})(?: at epoch (?P<epoch>\d{1,19}))? because its session has timed out\."
    ),
    Reason.immediate_shutdown: re.compile(
        rb"Unfenced broker (?P<broker>\d{1,10}) has requested and been granted an immediate shutdown\."
    ),
    Reason.controlled_shutdown: re.compile(
        rb"Unfenced broker (?P<broker>\d{1,10}) has requested and been granted a controlled shutdown\."
    ),
    Reason.shutdown_granted: re.compile(
        rb"The request from broker (?P<broker>\d{1,10}) to shut down has been granted since the lowest active offset "
        rb"\d{1,19} is now greater than the broker's controlled shutdown offset \d{1,19}\."
    ),
}


class Saying(NamedTuple):
    """What a line of the log says about a broker."""

    time_ms: int
    reason: Reason
    broker: int
    # None if the line does not name it.
    broker_epoch: int | None
    # The message alone, as the controller wrote it.
    text: str


class ControllerLog:
    """One log file, which may be rotated, cut off, or not there yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BufferedReader | None = None
        self._inode = 0
        self._rest = b""
        self._is_first = True
        self._sayings: deque[Saying] = deque(maxlen=SAYINGS_MAX)

    def look(self) -> None:
        """Read what was written since the last look. A file that cannot be read counts as none."""
        try:
            self._look()
        except OSError:
            self.close()

    def _look(self) -> None:
        if self._file is not None:
            self._read(self._file)
        found = os.stat(self._path)
        if self._file is None or found.st_ino != self._inode:
            # The former file was renamed, and has been read to its end.
            self.close()
            self._file = self._path.open("rb")
            self._inode = os.fstat(self._file.fileno()).st_ino
            if self._is_first and found.st_size > HISTORY_BYTES:
                self._file.seek(found.st_size - HISTORY_BYTES)
            self._read(self._file)
        self._is_first = False

    def _read(self, file: BufferedReader) -> None:
        size = os.fstat(file.fileno()).st_size
        if size < file.tell():
            # It was cut off, and written to again.
            self._rest = b""
            file.seek(0)
        if size - file.tell() > READ_BYTES_MAX:
            self._rest = b""
            file.seek(size - READ_BYTES_MAX)
        *lines, rest = (self._rest + file.read(READ_BYTES_MAX)).split(b"\n")
        for line in lines:
            self._take(line)
        # Only the beginning of a line tells its time, so a line that is too long says nothing.
        self._rest = rest if len(rest) <= LINE_BYTES_MAX else b""

    def _take(self, line: bytes) -> None:
        for reason, message in _MESSAGES.items():
            if (found := message.search(line[:LINE_BYTES_MAX])) is not None:
                epoch = found.groupdict().get("epoch")
                told_ms = _time_ms(line)
                # A line without a time is as old as this look, if the log was followed before.
                if told_ms is not None or not self._is_first:
                    self._sayings.append(
                        Saying(
                            now_ms() if told_ms is None else told_ms,
                            reason,
                            int(found["broker"]),
                            None if epoch is None else int(epoch),
                            found[0].decode(),
                        )
                    )

    def said(self, broker: int, broker_epoch: int | None, time_ms: int) -> list[Saying]:
        """Return what the log says about a broker near a time, newest first."""
        return [
            one
            for one in reversed(self._sayings)
            if one.broker == broker
            and (None in (one.broker_epoch, broker_epoch) or one.broker_epoch == broker_epoch)
            and time_ms - EARLIER_MS <= one.time_ms <= time_ms + LATER_MS
        ]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._rest = b""


def _time_ms(line: bytes) -> int | None:
    """Return the time with which a line begins, in milliseconds; None if it has another layout."""
    found = _TIME.match(line)
    if found is None:
        return None
    try:
        seconds = time.mktime(time.strptime(found[1].decode(), "%Y-%m-%d %H:%M:%S"))
    except (ValueError, OverflowError):
        return None
    return int(seconds) * 1000 + int(found[2])
