"""The story with real brokers. It also uses Kafka's own tools, and stops a broker cleanly."""

import time

from brokers.launch.kafka.properties import ZOOKEEPER_SESSION_MS
from cli.demo.kafka_cluster import KafkaDemoCluster
from cli.demo.story import (
    CALM_S,
    CREATED,
    FAIL_OVER,
    READ_BACK,
    STEP_TIMEOUT_S,
    TOPIC,
    Result,
    Story,
    is_whole,
)
from cli.demo.traffic import Writer
from cli.demo.watch import Watch
from conf.kafka_versions import KAFKA_VERSION, ZOOKEEPER_KAFKA_VERSION

MOVED_PARTITION = 1
STOPPED_PARTITION = 2
STARTED = "start the engine, two gateways and three brokers of Kafka"


class KafkaStory(Story):
    """Real brokers, led by the engine through a gateway, lose a leader, move replicas and stop."""

    steps = (
        f"{STARTED} {KAFKA_VERSION}",
        f"kafka-topics creates {TOPIC}: {CREATED}",
        *FAIL_OVER,
        f"kafka-reassign-partitions takes {TOPIC}-{MOVED_PARTITION} off its first broker",
        "kafka-reassign-partitions puts it back, and its log is copied",
        "kafka-leader-election makes preferred replicas lead",
        f"stop the leader of {TOPIC}-{STOPPED_PARTITION} cleanly (SIGTERM)",
        READ_BACK,
    )
    opening = "The brokers are unmodified Kafka brokers. Spark takes 10 to 30 s to start."
    detection = "detected by its closed port (its session is 9 s)"
    shows_high_watermarks = False

    def __init__(self, cluster: KafkaDemoCluster, watch: Watch) -> None:
        super().__init__(cluster, watch)
        self._kafka = cluster

    def tell(self) -> Result:
        self.start()
        self.create_topic()
        writer = self.new_writer()
        try:
            to_new_leader_s, to_first_ack_s = self.fail_over(writer)
            self._move()
            self._elect_preferred()
            waited_s = self._stop_cleanly(writer)
        finally:
            writer.stop()
        more = (("longest wait for a record while a broker stopped cleanly", f"{waited_s:.1f} s"),)
        return Result(to_new_leader_s, to_first_ack_s, writer.median_ack_s, self.read_back(writer), more)

    def _move(self) -> None:
        replicas = self.watch.partitions[MOVED_PARTITION].replicas
        self.over(f"broker {replicas[0]} left after {self._reassign(replicas[1:]):.1f} s")
        self.over(f"broker {replicas[0]} is in sync after {self._reassign(replicas):.1f} s")

    def _reassign(self, replicas: tuple[int, ...]) -> float:
        """Move a partition, and return how long it took until exactly ``replicas`` were in sync."""
        began_s = time.monotonic()
        self._kafka.reassign(TOPIC, MOVED_PARTITION, replicas)

        def moved(watch: Watch) -> bool:
            partition = watch.partitions[MOVED_PARTITION]
            return (
                partition.replicas == replicas and not partition.is_moving and sorted(partition.isr) == sorted(replicas)
            )

        self.watch.wait_for(f"end of the reassignment to {list(replicas)}", moved, STEP_TIMEOUT_S)
        return time.monotonic() - began_s

    def _elect_preferred(self) -> None:
        before = {number: partition.leader for number, partition in self.watch.partitions.items()}
        self._kafka.elect_preferred_leaders()
        self.wait_for("preferred leader everywhere", lambda partition: partition.leader == partition.replicas[0])
        moved = [
            f"{TOPIC}-{number} {before[number]} -> {partition.leader}"
            for number, partition in sorted(self.watch.partitions.items())
            if partition.leader != before[number]
        ]
        self.over(", ".join(moved))
        time.sleep(CALM_S)

    def _stop_cleanly(self, writer: Writer) -> float:
        """Stop a leader cleanly, and return the longest wait for an acknowledgement in its partition."""
        self.wait_for("ISR of three on every partition", is_whole)
        broker = self.watch.partitions[STOPPED_PARTITION].leader
        began_s = time.monotonic()
        self._kafka.stop_broker(broker, STEP_TIMEOUT_S)
        took_s = time.monotonic() - began_s
        self.wait_for("other leader everywhere", lambda partition: partition.leader not in (broker, -1))
        writer.wait_for_ack(STOPPED_PARTITION, time.monotonic(), STEP_TIMEOUT_S)
        waited_s = writer.longest_wait_s(STOPPED_PARTITION, began_s)
        self.over(f"broker {broker} handed over and ended in {took_s:.1f} s; records waited {waited_s:.1f} s at most")
        return waited_s


class ZookeeperStory(KafkaStory):
    """The same with brokers in ZooKeeper mode, which obey the gateway's requests."""

    steps = (f"{STARTED} {ZOOKEEPER_KAFKA_VERSION}, and their ZooKeeper", *KafkaStory.steps[1:])
    detection = f"detected by the end of its session with ZooKeeper ({ZOOKEEPER_SESSION_MS / 1000:g} s)"
