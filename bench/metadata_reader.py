"""A reader that fetches the metadata log as a broker does, and notes when it could act on each record."""

import threading
import time
from collections import deque

from bench.metadata_records import ReadBatch, whole_batches
from brokers.wire.schema import Values
from tests.support.controller_client import ControllerClient

FETCH_BYTES = 8 * 1024 * 1024
FETCH_WAIT_MS = 500
FETCH_TIMEOUT_S = 120.0
_RETRY_S = 0.05
_FENCED_LEADER_EPOCH, _UNKNOWN_LEADER_EPOCH = 74, 75


class MetadataReader(threading.Thread):
    """The thread that fetches until ``stop``. It adds committed batches to ``batches``; ``error`` is what ended it."""

    def __init__(self, port: int, broker: int, cluster_id: str) -> None:
        super().__init__(name=f"metadata-reader-{broker}", daemon=True)
        self.batches: list[ReadBatch] = []
        self.offset = 0
        self.error: Exception | None = None
        self._client = ControllerClient(port)
        self._client.wait_at_most(FETCH_TIMEOUT_S)
        self._broker = broker
        self._cluster_id = cluster_id
        self._epoch, self._last_epoch, self._high_watermark = 0, 0, -1
        self._uncommitted: deque[ReadBatch] = deque()
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._take(self._fetched())
        except Exception as error:
            self.error = error
        finally:
            self._client.close()

    def stop(self) -> None:
        self._stopping.set()
        self.join()

    def _fetched(self) -> Values:
        return self._client.fetch(
            self.offset,
            self._epoch,
            self._last_epoch,
            replica=self._broker,
            high_watermark=self._high_watermark,
            MaxBytes=FETCH_BYTES,
            MaxWaitMs=FETCH_WAIT_MS,
            ClusterId=self._cluster_id,
        )

    def _take(self, told: Values) -> None:
        read_s = time.monotonic()
        error = told.get("ErrorCode", 0)
        if error:
            if error in (_FENCED_LEADER_EPOCH, _UNKNOWN_LEADER_EPOCH) and told.get("CurrentLeader"):
                self._epoch = told["CurrentLeader"]["LeaderEpoch"]
            time.sleep(_RETRY_S)
            return
        if told["SnapshotId"]["EndOffset"] >= 0 or told["DivergingEpoch"]["EndOffset"] >= 0:
            raise RuntimeError(f"sent elsewhere at offset {self.offset}: {told['SnapshotId']} {told['DivergingEpoch']}")
        for data, records, next_offset, leader_epoch, is_control in whole_batches(told["Records"] or b""):
            self.offset, self._last_epoch = next_offset, leader_epoch
            if not is_control:
                self._uncommitted.append(ReadBatch(read_s, data, records, next_offset, leader_epoch))
        self._high_watermark = told["HighWatermark"]
        while self._uncommitted and self._uncommitted[0].next_offset <= self._high_watermark:
            self.batches.append(self._uncommitted.popleft()._replace(read_s=read_s))

    def count(self) -> int:
        """Return how many batches were read, as a position for ``since``."""
        if self.error is not None:
            raise RuntimeError(f"the metadata log cannot be read: {self.error!r}") from self.error
        return len(self.batches)
