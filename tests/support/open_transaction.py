"""A foreign program that leaves a transaction open on a bus on Kafka."""

import uuid

from confluent_kafka import Producer

from tests.support.waiting import TIMEOUT_S

EVENT = b'{"kind":"delete_topic","time_ms":1,"topic":"t"}'


class Stranger:
    """A program with a transactional producer that leaves its transaction open."""

    def __init__(self, servers: str) -> None:
        self.name = f"crashed-{uuid.uuid4().hex[:8]}"
        conf = {"bootstrap.servers": servers, "transactional.id": self.name, "transaction.timeout.ms": 45_000}
        self.producer = Producer(conf)
        self.producer.init_transactions(TIMEOUT_S)

    def write(self, topic: str, partition: int = 0) -> None:
        self.producer.begin_transaction()
        self.producer.produce(topic, EVENT, key=b"t-0-1", partition=partition)
        assert self.producer.flush(TIMEOUT_S) == 0
