"""One file of a log: whole record batches, appended, with a sparse index in memory."""

import bisect
import os
from collections.abc import Iterator
from pathlib import Path

from brokers.files import closed, write_all
from brokers.wire.batch_header import HEADER, Batch, batch_at, batches_in, intact

SUFFIX = ".log"
INDEX_INTERVAL_BYTES = 4_096
_SCAN_BYTES = 64 * 1_024


class Segment:
    """The batches from ``base_offset`` on; the next batch goes to ``next_offset``.

    The index notes an offset and its position every ``INDEX_INTERVAL_BYTES``, so a read scans little.
    """

    def __init__(self, directory: Path, base_offset: int) -> None:
        """Open or create the file; ``recover`` then reads its batches."""
        self.path = path = directory / f"{base_offset:020d}{SUFFIX}"
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size = 0
        self.max_timestamp = -1
        self._offsets: list[int] = []
        self._positions: list[int] = []
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)

    def recover(self, check: bool) -> Iterator[Batch]:
        """Read all batches in order, and cut the file at the first invalid one.

        With ``check`` each CRC is verified, because a killed process may have left half a write.
        """
        length = os.fstat(self._fd).st_size
        for batch in self._scan(0, length):
            if batch.base_offset < self.next_offset:
                break
            if check and not intact(memoryview(self._pread(self.size, batch.size)), batch):
                break
            self._note(batch)
            yield batch
        if self.size < length:
            os.ftruncate(self._fd, self.size)

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Write whole batches. After an error the file is as it was."""
        try:
            write_all(self._fd, data)
        except OSError:
            os.ftruncate(self._fd, self.size)
            raise
        for _, batch in batches_in(data):
            self._note(batch)

    def _note(self, batch: Batch) -> None:
        if not self._positions or self.size - self._positions[-1] >= INDEX_INTERVAL_BYTES:
            self._offsets.append(batch.base_offset)
            self._positions.append(self.size)
        self.size += batch.size
        self.next_offset = batch.next_offset
        self.max_timestamp = max(self.max_timestamp, batch.max_timestamp)

    def read(self, offset: int, max_bytes: int, upper: int) -> bytes:
        """Return whole batches, from the one with ``offset`` on, that end below ``upper``.

        They have at most ``max_bytes``, unless the first batch has more, so that a reader always advances (KIP-74).
        """
        start = end = -1
        for position, batch in self._from(offset):
            if batch.next_offset > upper:
                break
            if batch.last_offset < offset:
                continue
            if start < 0:
                start = end = position
            if end > start and position + batch.size - start > max_bytes:
                break
            end = position + batch.size
            if end - start >= max_bytes:
                break
        return self._pread(start, end - start) if start >= 0 else b""

    def batches(self) -> Iterator[Batch]:
        """Yield all batches."""
        return self._scan(0, self.size)

    def find_timestamp(self, timestamp: int) -> bytes | None:
        """Return the first batch that has a record not older than ``timestamp``."""
        position = 0
        for batch in self._scan(0, self.size):
            if batch.max_timestamp >= timestamp:
                return self._pread(position, batch.size)
            position += batch.size
        return None

    def truncate_to(self, offset: int) -> None:
        """Remove every batch that reaches ``offset`` or beyond."""
        keep = self.size
        for position, batch in self._from(offset):
            if batch.last_offset >= offset:
                keep = position
                break
        if keep == self.size:
            return
        os.ftruncate(self._fd, keep)
        self._forget()
        for batch in self._scan(0, keep):
            self._note(batch)

    def _forget(self) -> None:
        self.size, self.next_offset, self.max_timestamp = 0, self.base_offset, -1
        self._offsets.clear()
        self._positions.clear()

    def _from(self, offset: int) -> Iterator[tuple[int, Batch]]:
        at = bisect.bisect_right(self._offsets, offset) - 1
        position = self._positions[at] if at >= 0 else 0
        for batch in self._scan(position, self.size):
            yield position, batch
            position += batch.size

    def _scan(self, position: int, end: int) -> Iterator[Batch]:
        """Yield the batches in [position, end). Reads a chunk at a time, and skips the records of large batches."""
        chunk, chunk_at = b"", position
        while position < end:
            if position + HEADER.size > chunk_at + len(chunk):
                chunk, chunk_at = self._pread(position, min(_SCAN_BYTES, end - position)), position
            batch = batch_at(chunk, position - chunk_at)
            if batch is None or position + batch.size > end:
                return
            yield batch
            position += batch.size

    def _pread(self, position: int, size: int) -> bytes:
        data = os.pread(self._fd, size, position)
        while len(data) < size and (more := os.pread(self._fd, size - len(data), position + len(data))):
            data += more
        return data

    def flush(self) -> None:
        """Force the file to disk."""
        os.fsync(self._fd)

    def close(self) -> None:
        self._fd = closed(self._fd)

    def delete(self) -> None:
        """Close and remove the file."""
        self.close()
        self.path.unlink(missing_ok=True)
