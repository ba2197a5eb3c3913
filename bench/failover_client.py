"""The client that measures fail-overs: one idempotent producer at an even pace on every partition."""

import threading
import time
from typing import Any

from confluent_kafka import Producer

# Retries have librdkafka's own values, because with longer pauses the producer would measure itself.
CONFIG = {"acks": "all", "enable.idempotence": True, "linger.ms": 0, "log_level": 0}


class Pace:
    """A producer to all partitions of a topic, every ``interval_ms``, that records when acknowledgements arrive."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, interval_ms: int) -> None:
        self._producer = Producer({"bootstrap.servers": bootstrap, **CONFIG})
        self._topic = topic
        self._interval_s = interval_ms / 1000
        self._last: list[float] = [time.monotonic()] * partitions
        self._gaps: list[tuple[float, float, int]] = []
        self._failed: list[str] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pace", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.is_set():
            for partition in range(len(self._last)):
                self._producer.produce(self._topic, b"x" * 100, partition=partition, on_delivery=self._acknowledged)
            due += self._interval_s
            # Read acknowledgements as they arrive, because one that waits here would look like a gap.
            while (left := due - time.monotonic()) > 0:
                self._producer.poll(left)
            self._producer.poll(0)

    def _acknowledged(self, error: Any, message: Any) -> None:
        now, partition = time.monotonic(), message.partition()
        if error is not None:
            self._failed.append(str(error))
            return
        self._gaps.append((self._last[partition], now, partition))
        self._last[partition] = now

    def longest_gap(self, since: float) -> tuple[float, float]:
        """Return the beginning and the end of the longest gap on any partition, of those that ended after ``since``."""
        gaps = [(began, ended) for began, ended, _ in list(self._gaps) if ended > since]
        return max(gaps, key=lambda gap: gap[1] - gap[0])

    def goes_on(self, since: float) -> bool:
        """Return whether each partition had an acknowledgement after ``since``."""
        return all(last > since for last in self._last)

    def end(self) -> None:
        """Stop sending; raise ``AssertionError`` if a record was not acknowledged."""
        self._ended.set()
        self._thread.join(60)
        left = self._producer.flush(60)
        assert not left and not self._failed, f"{left} records left, {self._failed[:3]} failed"
