"""The time of a write with acks=all on mock brokers, whose high watermarks the engine moves."""

import argparse
import statistics
import tempfile
import threading
import time
from pathlib import Path

import confluent_kafka

from tests.support.engine import running_engine
from tests.support.mock_cluster import MockCluster

TOPIC = "written"
WARM_UP_WRITES = 5
_TIMEOUT_S = 30.0


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="acks", description="Measure writes with acks=all on mock brokers.")
    parser.add_argument("--writes", type=int, default=50)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the engine")
    options = parser.parse_args(given)
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name, running_engine(Path(name), *options.set):
        cluster = MockCluster(Path(name), settings=())
        try:
            cluster.start()
            cluster.create_topic(TOPIC, {"0": [1, 2, 3]}, min_insync_replicas="2")
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": cluster.bootstrap(), "acks": "all", "linger.ms": 0, "log_level": 0}
            )
            took_s = sorted([write_s(producer) for _ in range(WARM_UP_WRITES + options.writes)][WARM_UP_WRITES:])
        finally:
            cluster.stop()
    p50, p99 = statistics.median(took_s), took_s[int(len(took_s) * 0.99)]
    print(f"acks=all on three mock brokers, {len(took_s)} writes, one at a time: p50 {p50:.2f} s, p99 {p99:.2f} s")


def write_s(producer: confluent_kafka.Producer) -> float:
    """Write one record, and wait for its acknowledgement."""
    acknowledged = threading.Event()
    failed: list[str] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failed.append(str(error))
        acknowledged.set()

    began_s = time.monotonic()
    producer.produce(TOPIC, b"x" * 100, partition=0, on_delivery=delivered)
    while not acknowledged.is_set() and time.monotonic() - began_s < _TIMEOUT_S:
        producer.poll(0.05)
    if failed or not acknowledged.is_set():
        raise RuntimeError(f"a write was not acknowledged: {failed}")
    return time.monotonic() - began_s
