"""Measure writes with acks=all on mock brokers, whose high watermarks the engine decides."""

import argparse
import tempfile
import threading
import time
from pathlib import Path

import confluent_kafka
import psutil

from bench.load import Took
from bench.machine import Meter
from bench.report import Figure, measured
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
    measured("acks", given, lambda: [measure(options.writes, *options.set)])


def measure(writes: int, *settings: str) -> Figure:
    """Write records one by one."""
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name, running_engine(Path(name), *settings):
        engine = [one.pid for one in psutil.Process().children()]
        cluster = MockCluster(Path(name), settings=())
        try:
            cluster.start()
            cluster.create_topic(TOPIC, {"0": [1, 2, 3]}, min_insync_replicas="2")
            producer = confluent_kafka.Producer(
                {"bootstrap.servers": cluster.bootstrap(), "acks": "all", "linger.ms": 0, "log_level": 0}
            )
            for _ in range(WARM_UP_WRITES):
                write_s(producer)
            meter = Meter(engine)
            took_s = [write_s(producer) for _ in range(writes)]
            cpu_s = meter.spent_s() / writes
        finally:
            cluster.stop()
    took = [Took(wall_s=wall_s, cpu_s=cpu_s, changes=1) for wall_s in took_s]
    return Figure("engine, 3 mock brokers", 1, "write with acks=all", took)


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
