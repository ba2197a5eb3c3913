"""Steady traffic while links are cut, with acks=all and in transactions, and a check that none was lost or torn."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.clients import UNKNOWN_OFFSET
from tests.support.waiting import TIMEOUT_S, wait_until

RECORDS, WHOLE = "records", "whole"
PARTITIONS = 6
REPLICAS, MIN_ISR = 3, 2
BURST_S, TRANSACTION_S = 0.2, 0.5
# A client must not wait on a connection that is cut for Kafka's default of up to a minute.
QUICK = {"socket.timeout.ms": 8_000, "log_level": 0}
# A transaction whose client gave up is aborted soon, because it hides what comes after it.
TRANSACTION_TIMEOUT_MS = 10_000
ANSWER_TIMEOUT_S = 20.0


class Lost(NamedTuple):
    """Acknowledged records that are missing, and transactions of which only a part is there."""

    records: int
    transactions: int
    torn: int


class Acknowledged(NamedTuple):
    """An acknowledged record, and when that was."""

    partition: int
    offset: int
    at_s: float


class Load:
    """Traffic to two topics, from when it is made to ``end``."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self.acknowledged: dict[bytes, Acknowledged] = {}
        self.committed: dict[int, float] = {}
        self._next_transaction = 0
        self._lost: tuple[set[bytes], set[int], set[int]] = (set(), set(), set())
        self._ended = threading.Event()
        self._error: Exception | None = None
        self._create()
        self._threads = [
            threading.Thread(target=self._run, args=(work,), daemon=True) for work in (self._send, self._transact)
        ]
        for thread in self._threads:
            thread.start()

    def _create(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._bootstrap, "log_level": 0})
        config = {"min.insync.replicas": str(MIN_ISR)}
        topics = [NewTopic(name, PARTITIONS, REPLICAS, config=config) for name in (RECORDS, WHOLE)]
        for created in admin.create_topics(topics).values():
            created.result(TIMEOUT_S)

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self._error = error

    def _send(self) -> None:
        producer, number = self._idempotent(), PARTITIONS
        self._settle_first(producer)
        while not self._ended.is_set():
            try:
                for partition in range(PARTITIONS):
                    producer.produce(RECORDS, b"%d" % number, partition=partition, on_delivery=self._delivered)
                    number += 1
                until_s = time.monotonic() + BURST_S
                while (left_s := until_s - time.monotonic()) > 0:
                    producer.poll(left_s)
            except KafkaException:
                # A broker that lost records refuses all records after them.
                producer = self._idempotent()
        producer.flush(ANSWER_TIMEOUT_S)

    def _settle_first(self, producer: Producer) -> None:
        """Settle the first record of each partition before others follow (``tests.support.clients`` says why)."""
        for partition in range(PARTITIONS):
            producer.produce(RECORDS, b"%d" % partition, partition=partition, on_delivery=self._delivered)
        wait_until(lambda: producer.poll(0) is not None and len(self.acknowledged) == PARTITIONS, "first records")

    def _idempotent(self) -> Producer:
        return Producer({"bootstrap.servers": self._bootstrap, "enable.idempotence": True, "linger.ms": 5, **QUICK})

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            return
        offset = UNKNOWN_OFFSET if message.offset() is None else message.offset()
        self.acknowledged[message.value()] = Acknowledged(message.partition(), offset, time.time())

    def _transact(self) -> None:
        producer = self._transactional()
        while not self._ended.wait(TRANSACTION_S):
            number = self._next_transaction
            try:
                producer.begin_transaction()
                for partition in range(PARTITIONS):
                    producer.produce(WHOLE, b"%d" % number, partition=partition)
                producer.commit_transaction(ANSWER_TIMEOUT_S)
                self.committed[number] = time.time()
            except KafkaException:
                # The outcome is unknown. The next producer waits until it is decided.
                producer = self._transactional()
            self._next_transaction += 1

    def _transactional(self) -> Producer:
        settings = {"transactional.id": WHOLE, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, **QUICK}
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            producer = Producer({"bootstrap.servers": self._bootstrap, **settings})
            try:
                producer.init_transactions(ANSWER_TIMEOUT_S)
                return producer
            except KafkaException:
                if time.monotonic() > deadline_s or self._ended.is_set():
                    raise

    def acks_between(self, from_s: float, to_s: float) -> list[float]:
        """Return the times of acknowledgements in a time, in order."""
        return sorted(ack.at_s for ack in [*self.acknowledged.values()] if from_s <= ack.at_s < to_s)

    def commits_between(self, from_s: float, to_s: float) -> int:
        return sum(from_s <= at_s < to_s for at_s in [*self.committed.values()])

    def wait_for_commit(self) -> None:
        """Wait until a transaction that has not begun yet is committed."""
        begun = self._next_transaction

        def is_committed() -> bool:
            if self._error is not None:
                raise self._error
            return max(self.committed, default=-1) > begun

        wait_until(is_committed, "a transaction to be committed")

    def lost(self) -> Lost:
        """Read everything back, and return what was lost or torn since the last call."""
        acknowledged, committed = dict(self.acknowledged), set(self.committed)
        # A transaction can be read for sure once the next one of its producer was committed.
        decided = self._next_transaction
        self.wait_for_commit()
        records = self._read(RECORDS)
        there = {(value, at) for value, places in records.items() for at in places}
        there |= {(value, (at[0], UNKNOWN_OFFSET)) for value, at in there}
        missing = {value for value, ack in acknowledged.items() if (value, (ack.partition, ack.offset)) not in there}
        parts = {int(value): len({partition for partition, _ in at}) for value, at in self._read(WHOLE).items()}
        missing_whole = {number for number in committed if number not in parts}
        torn = {number for number, count in parts.items() if count < PARTITIONS and number < decided}
        before, self._lost = self._lost, (missing, missing_whole, torn)
        return Lost(*(len(now - then) for now, then in zip(self._lost, before, strict=True)))

    def _read(self, topic: str) -> Mapping[bytes, list[tuple[int, int]]]:
        """Read all that is committed; return the places of each value."""
        settings = {"bootstrap.servers": self._bootstrap, "group.id": "reader", "enable.auto.commit": False, **QUICK}
        consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
        found: dict[bytes, list[tuple[int, int]]] = {}
        unread = set(range(PARTITIONS))
        deadline_s = time.monotonic() + TIMEOUT_S
        try:
            while unread:
                assert time.monotonic() < deadline_s, f"partitions {unread} of {topic} were not read to their ends"
                for message in consumer.consume(1_000, 0.5):
                    error = message.error()
                    if error is None:
                        found.setdefault(message.value(), []).append((message.partition(), message.offset()))
                    elif error.code() == KafkaError._PARTITION_EOF:
                        unread.discard(message.partition())
        finally:
            consumer.close()
        return found

    def end(self) -> None:
        """Stop sending."""
        self._ended.set()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
            assert not thread.is_alive(), "a client does not end"
