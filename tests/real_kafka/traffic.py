"""Traffic during failures: producers, transactions that commit and abort, and a group that consumes everything."""

import faulthandler
import threading
import time
from collections import Counter, defaultdict

from confluent_kafka import Consumer, KafkaException, Message, Producer

from tests.support.clients import SENDERS, Sender, lost_records, read_all
from tests.support.waiting import TIMEOUT_S, wait_until

PARTITIONS = 6
RECORDS_A_SECOND = 20
# So many for each partition at once: brokers and clients take as much CPU time for many records as for one.
RECORDS_AT_ONCE = 2
BURST = PARTITIONS * RECORDS_AT_ONCE
TRANSACTIONS_A_SECOND = 2
# Tests break something when they have seen that traffic goes on, and then mostly wait: for a session to end, or for a
# process to start. Meanwhile the traffic costs more than all else, so there is less of it: a quarter.
OFTEN_S = 3.0
SELDOM_FACTOR = 4
MEMBERS = 2
# A frozen broker keeps its connections open, so clients must not wait on them for Kafka's default of up to a minute.
TIMEOUT_MS = 10_000
QUICK = {"socket.timeout.ms": TIMEOUT_MS}

Place = tuple[str, int]


class Pace:
    """When traffic comes: often while somebody looks at it and for some seconds after that, and seldom otherwise."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._often_until_s = time.monotonic()
        self._has_ended = False

    def hasten(self) -> None:
        """Let traffic come often, from now on for some seconds."""
        with self._changed:
            self._often_until_s = time.monotonic() + OFTEN_S
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def waited(self, period_s: float) -> bool:
        """Wait for a period, or for several where traffic comes seldom. Return False if the traffic has ended."""
        began_s = time.monotonic()
        with self._changed:
            while not self._has_ended and (left_s := self._end_s(began_s, period_s) - time.monotonic()) > 0:
                self._changed.wait(left_s)
            return not self._has_ended

    def _end_s(self, began_s: float, period_s: float) -> float:
        end_s = began_s + period_s
        return end_s if end_s < self._often_until_s else began_s + period_s * SELDOM_FACTOR


class Transactions:
    """A producer of transactions, each with a record to every partition; it commits two of three and aborts the rest.

    ``unknown`` holds transactions whose outcome the client does not know: they must be whole or absent. After
    one, the client is replaced, as its users have to do.
    """

    def __init__(self, bootstrap: str, topic: str, pace: Pace) -> None:
        self.topic = topic
        self.committed: list[int] = []
        self.unknown: set[int] = set()
        self.error: Exception | None = None
        self._bootstrap = bootstrap
        self._pace = pace
        self._thread = threading.Thread(target=self._run, name=topic, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            producer = self._producer()
            number = 0
            while self._pace.waited(1 / TRANSACTIONS_A_SECOND):
                try:
                    self._transact(producer, number)
                except KafkaException:
                    self.unknown.add(number)
                    producer = self._producer()
                number += 1
        except Exception as error:
            self.error = error

    def _producer(self) -> Producer:
        settings = {"bootstrap.servers": self._bootstrap, "transactional.id": self.topic, "log_level": 0}
        producer = Producer({**settings, **QUICK})
        producer.init_transactions(TIMEOUT_S)
        return producer

    def _transact(self, producer: Producer, number: int) -> None:
        producer.begin_transaction()
        for partition in range(PARTITIONS):
            producer.produce(self.topic, b"%d" % number, partition=partition)
        if number % 3 == 2:
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
            self.committed.append(number)

    def end(self) -> None:
        """Wait until the last one is done, after the pace has ended; raise the error if one had failed."""
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error


class Group:
    """Consumers of one group that remember each record's place; ``wrong`` lists violations."""

    def __init__(self, bootstrap: str, name: str, topics: list[str]) -> None:
        self.wrong: list[str] = []
        self._seen: dict[Place, dict[int, bytes]] = defaultdict(dict)
        self._topics = topics
        self._config = {
            "bootstrap.servers": bootstrap,
            "group.id": name,
            "auto.offset.reset": "earliest",
            # A broker answers every two seconds with all there is, and not for each record.
            "fetch.min.bytes": 1_000_000,
            "fetch.wait.max.ms": 2_000,
            "isolation.level": "read_committed",
            "log_level": 0,
            **QUICK,
        }
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._consume, daemon=True) for _ in range(MEMBERS)]
        for thread in self._threads:
            thread.start()

    def _consume(self) -> None:
        # A member that gets a partition again reads records again whose offsets were not committed.
        newest: dict[Place, int] = {}
        consumer = Consumer(self._config)
        consumer.subscribe(self._topics, on_assign=lambda consumer, places: newest.clear())
        try:
            while not self._ended.is_set():
                message = consumer.poll(0.2)
                if message is not None and message.error() is None:
                    self._take(message, newest)
        finally:
            consumer.close()

    def _take(self, message: Message, newest: dict[Place, int]) -> None:
        place, offset, value = (message.topic(), message.partition()), message.offset(), message.value()
        if offset <= newest.get(place, -1):
            self.wrong.append(f"{place}: {offset} after {newest[place]}")
        newest[place] = offset
        with self._lock:
            if self._seen[place].setdefault(offset, value) != value:
                self.wrong.append(f"{place}: {value!r} at {offset}, where {self._seen[place][offset]!r} was")

    def values(self, topic: str, partition: int) -> list[bytes]:
        """Return the values read from a partition, in order."""
        with self._lock:
            return [value for _, value in sorted(self._seen[topic, partition].items())]

    def end(self) -> None:
        """Leave the group."""
        self._ended.set()
        for thread in self._threads:
            thread.join(TIMEOUT_S)
            if thread.is_alive():
                faulthandler.dump_traceback()
            assert not thread.is_alive()


class Traffic:
    """Steady traffic until ``end``: both clients and transactions produce, and a group consumes.

    ``timeout_ms`` is kafka-python's. It should be longer than a frozen broker keeps its session: after this time the
    client connects to the broker again, and takes a whole core until that is answered.
    """

    def __init__(self, bootstrap: str, topic: str, timeout_ms: int = TIMEOUT_MS) -> None:
        self._bootstrap = bootstrap
        self._topic = topic
        quick = {"confluent-kafka": QUICK, "kafka-python": {"request_timeout_ms": timeout_ms}}
        self.senders: dict[str, Sender] = {name: new(bootstrap, **quick[name]) for name, new in SENDERS.items()}
        self._pace = Pace()
        self._transactions = Transactions(bootstrap, f"{topic}-whole", self._pace)
        self._group = Group(bootstrap, topic, [topic, self._transactions.topic])
        self._threads = [
            threading.Thread(target=self._send, args=(name, sender), daemon=True)
            for name, sender in self.senders.items()
        ]
        for thread in self._threads:
            thread.start()

    def _send(self, name: str, sender: Sender) -> None:
        number = 0
        while self._pace.waited(BURST / RECORDS_A_SECOND):
            for partition in [*range(PARTITIONS)] * RECORDS_AT_ONCE:
                sender.send(self._topic, partition, f"{name} {number}".encode())
                number += 1

    def goes_on(self) -> None:
        """Wait until both clients and a transaction have new acknowledgements.

        One burst of records, and one transaction, may have been on its way before.
        """
        before = {name: len(sender.acknowledged) for name, sender in self.senders.items()}
        committed = len(self._transactions.committed)

        def gone_on() -> bool:
            self._pace.hasten()
            assert self._transactions.error is None, self._transactions.error
            return len(self._transactions.committed) > committed + 1 and all(
                len(sender.acknowledged) > before[name] + BURST for name, sender in self.senders.items()
            )

        wait_until(gone_on, "records to be acknowledged")

    def end(self) -> None:
        """Stop sending, and compare the cluster's records and the consumed ones with the acknowledged ones."""
        self._pace.end()
        for thread in self._threads:
            thread.join(60)
        self._transactions.end()
        for sender in self.senders.values():
            sender.finish(TIMEOUT_S)
            assert sender.failed == []
        self._check_what_is_there()
        self._check_what_was_consumed()

    def _check_what_is_there(self) -> None:
        read = read_all(self._bootstrap, self._topic, PARTITIONS)
        assert len({record.value for record in read}) == len(read), "a record is there twice"
        for sender in self.senders.values():
            assert lost_records(sender.acknowledged, read) == {}
        for name in self.senders:
            for partition in range(PARTITIONS):
                values = [record.value.decode() for record in read if record.partition == partition]
                numbers = [int(value.split()[1]) for value in values if value.startswith(name)]
                assert numbers == sorted(numbers)

    def _check_what_was_consumed(self) -> None:
        """Check that the group saw each acknowledged record in its place, and only committed transactions."""
        acknowledged = Counter(
            partition for sender in self.senders.values() for partition, _ in sender.acknowledged.values()
        )
        whole = [b"%d" % number for number in self._transactions.committed]
        unknown = {b"%d" % number for number in self._transactions.unknown}

        def all_came() -> bool:
            return all(
                len(self._group.values(self._topic, partition)) >= acknowledged[partition]
                and set(whole) <= set(self._group.values(self._transactions.topic, partition))
                for partition in range(PARTITIONS)
            )

        wait_until(all_came, "the group to consume all")
        time.sleep(1.0)  # nothing more may come
        self._group.end()
        assert self._group.wrong == []
        first = self._group.values(self._transactions.topic, 0)
        for partition in range(PARTITIONS):
            assert len(self._group.values(self._topic, partition)) == acknowledged[partition]
            values = self._group.values(self._transactions.topic, partition)
            assert values == first, "a transaction is in one partition and not in another"
            assert [value for value in values if value not in unknown] == whole
