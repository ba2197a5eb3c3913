"""The load of a soak: records, topics that come and go, brokers that die, and readers of the state."""

import contextlib
import threading
import time
from collections.abc import Callable

import confluent_kafka

from tests.support.mock_cluster import MockCluster

TOPIC = "soak"
RECORD_INTERVAL_S = 0.05
CHURN_INTERVAL_S = 5.0
KILL_INTERVAL_S = 45.0
DOWN_S = 8.0
FLUSH_TIMEOUT_S = 60.0


class Load:
    """Three loops on a cluster of mock brokers that run until ``stop``; ``errors`` has the errors that ended one."""

    def __init__(self, cluster: MockCluster, record_interval_s: float = RECORD_INTERVAL_S) -> None:
        self._cluster = cluster
        self._record_interval_s = record_interval_s
        self._stopping = threading.Event()
        self.errors: list[Exception] = []
        self.acknowledged = 0
        loops = (self._produce, self._churn, self._kill_brokers)
        self._threads = [threading.Thread(target=self._kept, args=(loop,), daemon=True) for loop in loops]

    def start(self) -> None:
        """Create the topic, and start the loops."""
        self._cluster.create_topic(TOPIC, {str(number): [1, 2, 3] for number in range(6)}, min_insync_replicas="2")
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End all loops that have started, and wait for them."""
        self._stopping.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(FLUSH_TIMEOUT_S * 2)

    def _kept(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except Exception as error:
            self.errors.append(error)

    def _produce(self) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self._cluster.bootstrap(), "acks": "all", "linger.ms": 5, "log_level": 0}
        )

        def delivered(error: object, message: object) -> None:
            self.acknowledged += error is None

        while not self._stopping.wait(self._record_interval_s):
            with contextlib.suppress(BufferError):
                producer.produce(TOPIC, b"x" * 100, on_delivery=delivered)
            producer.poll(0)
        producer.flush(FLUSH_TIMEOUT_S)

    def _churn(self) -> None:
        number = 0
        while not self._stopping.wait(CHURN_INTERVAL_S):
            number += 1
            self._cluster.publish("create_topic", topic=f"churn-{number}", partitions=4, replication_factor=2)
            self._cluster.publish("alter_config", entity="topic", name=TOPIC, config={"retention.ms": str(number)})
            self._cluster.view()
            self._cluster.publish("delete_topic", topic=f"churn-{number}")

    def _kill_brokers(self) -> None:
        while not self._stopping.wait(KILL_INTERVAL_S):
            broker = self._cluster.brokers[int(time.monotonic()) % len(self._cluster.brokers)]
            self._cluster.kill(broker)
            self._stopping.wait(DOWN_S)
            self._cluster.start(broker)
