"""What happens in the demo, step by step."""

import time
from collections.abc import Callable

import msgspec

from isrflow.cli.demo.cluster import BROKERS, DemoCluster
from isrflow.cli.demo.processes import DemoError
from isrflow.cli.demo.traffic import Account, Writer, account, read_all
from isrflow.cli.demo.watch import Watch

TOPIC = "orders"
PARTITIONS = 3
MIN_ISR = 2
VICTIM_PARTITION = 0
START_TIMEOUT_S = 90.0
STEP_TIMEOUT_S = 40.0
RECORDS_BEFORE = 600
CALM_S = 2.0

STEPS = (
    "start the engine and three brokers",
    f"create topic {TOPIC}: {PARTITIONS} partitions, {len(BROKERS)} replicas, min.insync.replicas={MIN_ISR}",
    "write with acks=all",
    f"kill the leader of {TOPIC}-{VICTIM_PARTITION} (SIGKILL)",
    "elect a new leader",
    "acknowledge the next record",
    "bring the broker back, and let the ISR grow",
    "read all back from the start",
)


class Result(msgspec.Struct, frozen=True):
    """Hold what the demo measured."""

    to_new_leader_s: float
    to_first_ack_s: float
    median_ack_s: float
    account: Account


class Story:
    """Tell the story; ``done`` holds the steps that are over with what came of them."""

    def __init__(self, cluster: DemoCluster, watch: Watch) -> None:
        self._cluster = cluster
        self._watch = watch
        self.began_s = time.monotonic()
        self.done: list[str] = []
        self.writer: Writer | None = None
        self.on_step: Callable[[int, str], None] = lambda step, outcome: None

    def _over(self, outcome: str) -> None:
        self.done.append(outcome)
        self.on_step(len(self.done) - 1, outcome)

    def tell(self) -> Result:
        """Run all steps. Raises ``DemoError`` where one does not come to its end in time."""
        self._start()
        self._create_topic()
        writer = self._write()
        try:
            killed, killed_s = self._kill_leader(writer)
            elected_s = self._elect(killed, killed_s)
            acked_s = writer.wait_for_ack(VICTIM_PARTITION, elected_s, STEP_TIMEOUT_S)
            self._over(f"{acked_s - killed_s:.1f} s after the kill")
            self._bring_back(killed)
        finally:
            writer.stop()
        return Result(elected_s - killed_s, acked_s - killed_s, writer.median_ack_s, self._read_back(writer))

    def _start(self) -> None:
        self._cluster.start_engine()
        for broker in BROKERS:
            self._cluster.start_broker(broker)
        self._watch.start()
        everyone = dict.fromkeys(BROKERS, "active")
        self._watch.wait_for("three active brokers", lambda w: w.brokers == everyone, START_TIMEOUT_S)
        self._over(f"all active after {time.monotonic() - self.began_s:.0f} s")

    def _create_topic(self) -> None:
        request_id = f"create-{TOPIC}"
        self._cluster.create_topic(TOPIC, PARTITIONS, MIN_ISR, request_id)
        self._watch.wait_for("answer to create_topic", lambda w: request_id in w.answers, STEP_TIMEOUT_S)
        answer = self._watch.answers[request_id]
        if answer.error != "NONE":
            raise DemoError(f"the topic was refused: {answer.error}: {answer.message}")
        self._over(f"topic id {answer.topic_id}")

    def _write(self) -> Writer:
        writer = self.writer = Writer(self._cluster.bootstrap_servers(), TOPIC, PARTITIONS)
        writer.start()
        deadline = time.monotonic() + STEP_TIMEOUT_S
        while writer.acked_count < RECORDS_BEFORE:
            self._cluster.check()
            if writer.errors:
                raise DemoError(f"writing failed: {writer.errors[0]}")
            if time.monotonic() > deadline:
                raise DemoError(f"{writer.acked_count} records were acknowledged within {STEP_TIMEOUT_S:.0f} s")
            time.sleep(0.05)
        self._over(f"{writer.acked_count} records acknowledged, and going on")
        return writer

    def _kill_leader(self, writer: Writer) -> tuple[int, float]:
        led = self._watch.partitions[VICTIM_PARTITION]
        killed_s = time.monotonic()
        self._cluster.kill_broker(led.leader)
        self._over(f"broker {led.leader}, leader in epoch {led.leader_epoch}, after {writer.acked_count} records")
        return led.leader, killed_s

    def _elect(self, killed: int, killed_s: float) -> float:
        """Wait until no partition is led by the dead broker; return when the last one's leader was decided."""
        self._watch.wait_for(
            "new leader", lambda w: all(led.leader not in (killed, -1) for led in w.partitions.values()), STEP_TIMEOUT_S
        )
        led = self._watch.partitions[VICTIM_PARTITION]
        took_s = led.elected_s - killed_s
        self._over(f"broker {led.leader} in epoch {led.leader_epoch}, {took_s:.1f} s after the kill")
        return led.elected_s

    def _bring_back(self, broker: int) -> None:
        time.sleep(CALM_S)
        began_s = time.monotonic()
        self._cluster.start_broker(broker)
        self._watch.wait_for(
            "ISR of three on every partition",
            lambda w: all(sorted(led.isr) == sorted(BROKERS) for led in w.partitions.values()),
            STEP_TIMEOUT_S,
        )
        self._over(f"all ISRs are {list(BROKERS)} again after {time.monotonic() - began_s:.1f} s")
        time.sleep(CALM_S)

    def _read_back(self, writer: Writer) -> Account:
        ends = {
            partition: max((one.offset for one in acked), default=-1) + 1 for partition, acked in writer.acked.items()
        }
        made = account(writer.acked, read_all(self._cluster.bootstrap_servers(), TOPIC, ends))
        self._over(f"{made.read_back} records")
        return made
