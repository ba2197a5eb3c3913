"""Real clients: one writes and remembers what was acknowledged, one reads everything back."""

import itertools
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from cli.demo.cluster import DemoError

INTERVAL_S = 0.01
FLUSH_TIMEOUT_S = 30.0
READ_TIMEOUT_S = 30.0
JOIN_TIMEOUT_S = 10.0
# As the client reports it.
UNKNOWN_OFFSET = -1


class Acked(NamedTuple):
    """An acknowledged record: its offset, its number, when it was acknowledged, and how long that took."""

    # UNKNOWN_OFFSET if the record was sent twice and the broker answered that it had it already.
    offset: int
    number: int
    at_s: float
    took_s: float = 0.0


class Writer(threading.Thread):
    """A thread that steadily writes numbered records to every partition, with acks=all and an idempotent producer."""

    def __init__(self, bootstrap_servers: Sequence[str], topic: str, partitions: int) -> None:
        super().__init__(name="writer", daemon=True)
        from kafka import KafkaProducer

        self._producer: Any = KafkaProducer(
            bootstrap_servers=list(bootstrap_servers),
            acks="all",
            enable_idempotence=True,
            request_timeout_ms=5_000,
            # With a short backoff the client would pick the killed broker as the least loaded, and ask it for metadata.
            reconnect_backoff_ms=2_000,
            reconnect_backoff_max_ms=2_000,
            metadata_max_age_ms=500,
            allow_auto_create_topics=False,
        )
        self._topic = topic
        self._stopping = threading.Event()
        self.acked: dict[int, list[Acked]] = {partition: [] for partition in range(partitions)}
        self.errors: list[str] = []

    @property
    def acked_count(self) -> int:
        return sum(map(len, self.acked.values()))

    @property
    def median_ack_s(self) -> float:
        return statistics.median(one.took_s for records in self.acked.values() for one in records)

    def run(self) -> None:
        number = 0
        try:
            while not self._stopping.wait(INTERVAL_S):
                for partition in self.acked:
                    self._send(partition, number)
                if number == 0:
                    # A broker that hears late that it leads a new partition may refuse the first record and take the
                    # second one. The repeated first one is out of order then, and may be lost (KAFKA-15591).
                    self._producer.flush(timeout=FLUSH_TIMEOUT_S)
                number += 1
        except Exception as error:
            self.errors.append(f"the producer stopped: {error!r}")

    def _send(self, partition: int, number: int) -> None:
        began_s = time.monotonic()

        def acknowledged(metadata: Any) -> None:
            now_s = time.monotonic()
            self.acked[partition].append(Acked(metadata.offset, number, now_s, now_s - began_s))

        sent = self._producer.send(self._topic, value=b"%d" % number, partition=partition)
        sent.add_callback(acknowledged)
        sent.add_errback(lambda error: self.errors.append(repr(error)))

    def wait_for_ack(self, partition: int, after_s: float, timeout_s: float) -> float:
        """Wait for an acknowledgement after ``after_s``, and return its time."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            last = self.acked[partition][-200:]
            at_s = next((acked.at_s for acked in last if acked.at_s > after_s), None)
            if at_s is not None:
                return at_s
            time.sleep(INTERVAL_S / 2)
        said = f"; the producer said {self.errors[-1]}" if self.errors else ""
        raise DemoError(f"no record of partition {partition} was acknowledged within {timeout_s:.0f} s{said}")

    def longest_wait_s(self, partition: int, from_s: float) -> float:
        """Return the longest time that any record acknowledged after ``from_s`` took."""
        return max((one.took_s for one in self.acked[partition] if one.at_s >= from_s), default=0.0)

    def stop(self) -> None:
        """Stop sending, and wait for the records in flight."""
        self._stopping.set()
        self.join(JOIN_TIMEOUT_S)
        try:
            self._producer.flush(timeout=FLUSH_TIMEOUT_S)
        finally:
            self._producer.close(timeout=5)


class Account(msgspec.Struct, frozen=True):
    """The result of comparing acknowledged records with those read back."""

    acknowledged: int
    read_back: int
    lost: int
    duplicates: int
    out_of_order: int

    @property
    def is_clean(self) -> bool:
        return self.lost == self.duplicates == self.out_of_order == 0


def read_all(bootstrap_servers: Sequence[str], topic: str, ends: dict[int, int]) -> dict[int, list[tuple[int, int]]]:
    """Read every partition from its start to at least ``ends``. Return (offset, number) of each record.

    Records that cannot be read in time are missing from the result, so ``account`` counts them as lost.
    """
    from kafka import KafkaConsumer, TopicPartition

    consumer: Any = KafkaConsumer(
        bootstrap_servers=list(bootstrap_servers), group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    read: dict[int, list[tuple[int, int]]] = {partition: [] for partition in ends}
    try:
        partitions = [TopicPartition(topic, partition) for partition in ends]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        deadline = time.monotonic() + READ_TIMEOUT_S
        while time.monotonic() < deadline and _is_behind(consumer, ends, partitions):
            for records in consumer.poll(timeout_ms=200).values():
                for record in records:
                    read[record.partition].append((record.offset, int(record.value)))
    finally:
        consumer.close()
    return read


def _is_behind(consumer: Any, ends: dict[int, int], partitions: Sequence[Any]) -> bool:
    """Check whether anything is left to read. Unknown counts as yes."""
    from kafka.errors import KafkaConnectionError

    try:
        return any(consumer.position(place) < ends[place.partition] for place in partitions)
    except KafkaConnectionError:
        # It asked a broker that is down. The next call asks another one.
        return True


def account(acked: dict[int, list[Acked]], read: dict[int, list[tuple[int, int]]]) -> Account:
    """Compare acknowledged records with those read: each must appear once, in order, at its offset if that is known."""
    lost = duplicates = out_of_order = 0
    for partition, records in acked.items():
        found = {*read[partition], *((UNKNOWN_OFFSET, number) for _, number in read[partition])}
        lost += sum((one.offset, one.number) not in found for one in records)
        numbers = [number for _, number in read[partition]]
        duplicates += sum(often - 1 for often in Counter(numbers).values())
        out_of_order += sum(later < earlier for earlier, later in itertools.pairwise(numbers))
    return Account(
        acknowledged=sum(map(len, acked.values())),
        read_back=sum(map(len, read.values())),
        lost=lost,
        duplicates=duplicates,
        out_of_order=out_of_order,
    )
