"""The steps of a demo that all stories share."""

import time
from collections.abc import Callable

import msgspec

from brokers.launch.service import START_TIMEOUT_S
from cli.demo.cluster import BROKERS, DemoError
from cli.demo.kafka_cluster import KafkaDemoCluster
from cli.demo.mock_cluster import MockDemoCluster
from cli.demo.traffic import Account, Writer, account, read_all
from cli.demo.watch import Watch, WatchedPartition

AnyCluster = MockDemoCluster | KafkaDemoCluster
TOPIC = "orders"
PARTITIONS = 3
MIN_ISR = 2
VICTIM_PARTITION = 0
STEP_TIMEOUT_S = 60.0
RECORDS_BEFORE = 600
CALM_S = 2.0
# The steps of `Story.fail_over`, from the first record until the ISR is whole again.
FAIL_OVER = (
    "write with acks=all",
    f"kill the leader of {TOPIC}-{VICTIM_PARTITION} (SIGKILL)",
    "elect a new leader",
    "acknowledge the next record",
    "restart the broker, and wait for the ISR to grow",
)
CREATED = f"{PARTITIONS} partitions, {len(BROKERS)} replicas, min.insync.replicas={MIN_ISR}"
READ_BACK = "read all records back"


class Result(msgspec.Struct, frozen=True):
    """The measurements of a demo. ``more`` holds the extra ones of a story, each a name and a text."""

    to_new_leader_s: float
    to_first_ack_s: float
    median_ack_s: float
    account: Account
    more: tuple[tuple[str, str], ...] = ()


class Story:
    """A demo's story. ``done`` holds the outcome of each finished step.

    ``detection`` is the summary's text on how the dead leader was detected.
    """

    steps: tuple[str, ...]
    opening: str
    detection: str
    shows_high_watermarks = True

    def __init__(self, cluster: AnyCluster, watch: Watch) -> None:
        self._cluster = cluster
        self.watch = watch
        self.began_s = time.monotonic()
        self.done: list[str] = []
        self.writer: Writer | None = None
        self.on_step: Callable[[int, str], None] = lambda step, outcome: None

    def tell(self) -> Result:
        """Run all steps. Raises ``DemoError`` or ``ServiceError`` if one does not end in time."""
        raise NotImplementedError

    def over(self, outcome: str) -> None:
        """End the current step with its outcome."""
        self.done.append(outcome)
        self.on_step(len(self.done) - 1, outcome)

    def start(self) -> None:
        """Run the first step: start the whole cluster."""
        self.watch.start()
        self._cluster.start()
        everyone = dict.fromkeys(BROKERS, "active")
        self.watch.wait_for("three active brokers", lambda w: w.brokers == everyone, START_TIMEOUT_S)
        self._cluster.wait_until_started()
        self.over(f"all active after {time.monotonic() - self.began_s:.0f} s")

    def create_topic(self) -> None:
        """Run the second step: create a topic, and wait for a leader of each partition."""
        self._cluster.create_topic(TOPIC, PARTITIONS, MIN_ISR)
        self.wait_for("leader of each partition", lambda partition: partition.leader >= 0)
        self.over(f"led by {', '.join(str(self.watch.partitions[number].leader) for number in range(PARTITIONS))}")

    def wait_for(self, what: str, test: Callable[[WatchedPartition], bool]) -> None:
        """Wait until ``test`` is true of every partition. Raises ``DemoError`` with ``what``."""

        def true_of_all(watch: Watch) -> bool:
            return len(watch.partitions) == PARTITIONS and all(map(test, watch.partitions.values()))

        self.watch.wait_for(what, true_of_all, STEP_TIMEOUT_S)

    def fail_over(self, writer: Writer) -> tuple[float, float]:
        """Run the steps of ``FAIL_OVER``. Return the seconds from the kill to the new leader, and to the next ack."""
        self._write(writer)
        killed, killed_s = self._kill_leader(writer)
        elected_s = self._elect(killed, killed_s)
        acked_s = writer.wait_for_ack(VICTIM_PARTITION, elected_s, STEP_TIMEOUT_S)
        self.over(f"{acked_s - killed_s:.1f} s after the kill")
        self._bring_back(killed)
        return elected_s - killed_s, acked_s - killed_s

    def new_writer(self) -> Writer:
        """Create the writer for the rest of the story."""
        self.writer = Writer(self._cluster.bootstrap_servers(), TOPIC, PARTITIONS)
        return self.writer

    def _write(self, writer: Writer) -> None:
        writer.start()
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while writer.acked_count < RECORDS_BEFORE:
            self._cluster.check()
            if writer.errors:
                raise DemoError(f"writing failed: {writer.errors[0]}")
            if time.monotonic() > deadline:
                raise DemoError(f"only {writer.acked_count} records were acknowledged within {STEP_TIMEOUT_S:.0f} s")
            time.sleep(0.05)
        self.over(f"{writer.acked_count} records acknowledged, more to come")

    def _kill_leader(self, writer: Writer) -> tuple[int, float]:
        partition = self.watch.partitions[VICTIM_PARTITION]
        killed_s = time.monotonic()
        self._cluster.broker(partition.leader).kill()
        self.over(
            f"broker {partition.leader}, leader in epoch {partition.leader_epoch}, after {writer.acked_count} records"
        )
        return partition.leader, killed_s

    def _elect(self, killed: int, killed_s: float) -> float:
        """Wait until the dead broker leads no partition. Return when the victim partition's new leader was decided."""
        self.wait_for("new leader", lambda partition: partition.leader not in (killed, -1))
        partition = self.watch.partitions[VICTIM_PARTITION]
        took_s = partition.elected_s - killed_s
        self.over(f"broker {partition.leader} in epoch {partition.leader_epoch}, {took_s:.1f} s after the kill")
        return partition.elected_s

    def _bring_back(self, broker: int) -> None:
        time.sleep(CALM_S)
        began_s = time.monotonic()
        self._cluster.start_service(self._cluster.broker(broker))
        self.wait_for("ISR of three on every partition", is_whole)
        self.over(f"all ISRs are {list(BROKERS)} again after {time.monotonic() - began_s:.1f} s")
        time.sleep(CALM_S)

    def read_back(self, writer: Writer) -> Account:
        """Run the last step: read all records, and compare them with the acknowledged ones."""
        ends = {
            partition: max((one.offset for one in acked), default=-1) + 1 for partition, acked in writer.acked.items()
        }
        made = account(writer.acked, read_all(self._cluster.bootstrap_servers(), TOPIC, ends))
        self.over(f"{made.read_back} records")
        return made


class MockStory(Story):
    """A cluster of mock brokers loses a leader."""

    steps = ("start the engine and three brokers", f"create topic {TOPIC}: {CREATED}", *FAIL_OVER, READ_BACK)
    opening = "The broker session is 3 s in this demo, instead of Kafka's 9 s. Spark takes 10 to 30 s to start."
    detection = "including the broker session of 3.0 s"

    def tell(self) -> Result:
        self.start()
        self.create_topic()
        writer = self.new_writer()
        try:
            to_new_leader_s, to_first_ack_s = self.fail_over(writer)
        finally:
            writer.stop()
        return Result(to_new_leader_s, to_first_ack_s, writer.median_ack_s, self.read_back(writer))


def is_whole(partition: WatchedPartition) -> bool:
    """Check whether all brokers are in a partition's ISR."""
    return sorted(partition.isr) == sorted(BROKERS)
