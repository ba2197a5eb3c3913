"""Two real Kafka clients behind one small interface: send records, then read everything back."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol

import confluent_kafka
import kafka

from tests.support.waiting import TIMEOUT_S, wait_until


class Read(NamedTuple):
    """A record as a consumer read it."""

    partition: int
    offset: int
    value: bytes


# Partition and offset.
Place = tuple[int, int]
# A producer does not know the offset of a record that it sent twice, if the broker answers that it has it already
# (DUPLICATE_SEQUENCE_NUMBER).
UNKNOWN_OFFSET = -1


def error_name_of(asked: Future[Any]) -> str:
    """Return Kafka's name of the error with which an admin client's request ends, or NONE."""
    try:
        asked.result(TIMEOUT_S)
    except confluent_kafka.KafkaException as error:
        return str(error.args[0].name())
    return "NONE"


class Sender(Protocol):
    """A producer with acks=all; ``acknowledged`` maps each acknowledged value to its place."""

    acknowledged: dict[bytes, Place]
    failed: list[str]

    def send(self, topic: str, partition: int, value: bytes) -> None: ...

    def finish(self, timeout_s: float) -> None: ...


class _Producing:
    """The records that both producers remember.

    The first record of a partition is settled before the next one is sent. Otherwise a broker that has yet to hear that
    it leads a new partition may refuse the first record, and accept the second. The repeated first record is then out
    of order, and a client may report it as acknowledged although no log has it (KAFKA-15591).
    """

    def __init__(self) -> None:
        self.acknowledged: dict[bytes, Place] = {}
        self.failed: list[str] = []
        self._first: dict[tuple[str, int], bytes] = {}

    def _settle_first(self, topic: str, partition: int, value: bytes, serve: Callable[[], object]) -> None:
        first = self._first.setdefault((topic, partition), value)

        def is_settled() -> bool:
            serve()
            return first is value or first in self.acknowledged or bool(self.failed)

        wait_until(is_settled, "the first record of a partition to be acknowledged")


class ConfluentSender(_Producing):
    """librdkafka's producer."""

    def __init__(self, bootstrap: str, **config: Any) -> None:
        super().__init__()
        settings = {"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5}
        self._producer = confluent_kafka.Producer({**settings, "log_level": 0, **config})

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._settle_first(topic, partition, value, lambda: self._producer.poll(0))
        self._producer.produce(topic, value, partition=partition, on_delivery=self._delivered)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            offset = UNKNOWN_OFFSET if message.offset() is None else message.offset()
            self.acknowledged[message.value()] = (message.partition(), offset)

    def finish(self, timeout_s: float) -> None:
        assert self._producer.flush(timeout_s) == 0


class KafkaPythonSender(_Producing):
    """kafka-python's producer with its defaults: idempotent, acks=all."""

    def __init__(self, bootstrap: str, **config: Any) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._producer = kafka.KafkaProducer(bootstrap_servers=bootstrap.split(","), linger_ms=5, **config)

    def send(self, topic: str, partition: int, value: bytes) -> None:
        self._settle_first(topic, partition, value, lambda: None)
        future = self._producer.send(topic, value, partition=partition)
        future.add_callback(self._delivered, value)
        future.add_errback(lambda error: self.failed.append(repr(error)))

    def _delivered(self, value: bytes, metadata: Any) -> None:
        with self._lock:
            self.acknowledged[value] = (metadata.partition, metadata.offset)

    def finish(self, timeout_s: float) -> None:
        self._producer.flush(timeout_s)
        self._producer.close(timeout=TIMEOUT_S)


SENDERS = {"confluent-kafka": ConfluentSender, "kafka-python": KafkaPythonSender}


def lost_records(acknowledged: Mapping[bytes, Place], read: Iterable[Read]) -> dict[bytes, Place]:
    """Return the acknowledged records that are not in their places."""
    places: set[tuple[bytes, Place]] = set()
    for record in read:
        places |= {
            (record.value, (record.partition, record.offset)),
            (record.value, (record.partition, UNKNOWN_OFFSET)),
        }
    return {value: place for value, place in acknowledged.items() if (value, place) not in places}


# The errors of a client whose broker does not know the partition yet.
_NOT_HEARD_OF = ("_UNKNOWN_PARTITION", "_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART")


def read_all(bootstrap: str, topic: str, partitions: int, timeout_s: float = 60) -> list[Read]:
    """Read every partition from its beginning to its present high watermark."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "test", "enable.auto.commit": False, "log_level": 0}
    )
    try:
        places = [confluent_kafka.TopicPartition(topic, p) for p in range(partitions)]
        ends = {place.partition: _end_of(consumer, place, timeout_s) for place in places}
        consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(partitions)])
        return list(_until(consumer, ends, timeout_s))
    finally:
        consumer.close()


def _end_of(consumer: confluent_kafka.Consumer, place: confluent_kafka.TopicPartition, timeout_s: float) -> int:
    """Return a partition's high watermark. A broker that has just started may not have heard of the partition yet."""

    def watermarks() -> tuple[int, int] | None:
        try:
            found: tuple[int, int] = consumer.get_watermark_offsets(place, timeout=timeout_s)
        except confluent_kafka.KafkaException as error:
            if error.args[0].name() not in _NOT_HEARD_OF:
                raise
            return None
        return found

    _, high = wait_until(watermarks, f"a broker to hear of {place.topic}-{place.partition}", timeout_s)
    return int(high)


def _until(consumer: confluent_kafka.Consumer, ends: dict[int, int], timeout_s: float) -> Iterator[Read]:
    missing = {partition for partition, end in ends.items() if end}
    deadline = time.monotonic() + timeout_s
    while missing:
        assert time.monotonic() < deadline, f"partitions {missing} were not read to their ends {ends}"
        for message in consumer.consume(1_000, 0.5):
            assert message.error() is None, message.error()
            yield Read(message.partition(), message.offset(), message.value())
            if message.offset() + 1 >= ends[message.partition()]:
                missing.discard(message.partition())
