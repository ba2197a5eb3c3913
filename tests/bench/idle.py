"""CPU at rest: the engine with three mock brokers, and every controller with many brokers that send heartbeats."""

import argparse
import tempfile
import time
from pathlib import Path

import psutil

from tests.bench.drivers import DRIVERS
from tests.bench.load import Load
from tests.bench.machine import Meter
from tests.bench.play import rounds
from tests.bench.session import measured
from tests.support.engine import running_engine
from tests.support.mock_cluster import MockCluster

SETTLE_S = 20.0
BROKERS = (100, 1_000)
PARTITIONS = 1_000
# Kafka's default.
HEARTBEAT_MS = 2_000


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="idle", description="Measure the CPU of controllers at rest.")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to watch")
    parser.add_argument("--brokers", default=",".join(map(str, BROKERS)), help="how many brokers beat, with commas")
    parser.add_argument("--drivers", default="engine,peer", help=f"with commas, of {', '.join(DRIVERS)}")
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args(given)
    with_mock_brokers(options.seconds)
    makes = {name: DRIVERS[name] for name in options.drivers.split(",")}
    loads = [
        Load(
            partitions=options.partitions,
            brokers=int(brokers),
            heartbeat_ms=HEARTBEAT_MS,
            idle_s=options.seconds,
            steps=("create", "idle"),
        )
        for brokers in options.brokers.split(",")
    ]
    measured("idle", given, lambda: rounds(loads, makes, 1, SETTLE_S))


def with_mock_brokers(seconds: float) -> None:
    """Print what an engine and three mock brokers cost when idle."""
    with (
        tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name,
        running_engine(Path(name), "metrics.port=-1"),
    ):
        engine = psutil.Process().children(recursive=True)
        cluster = MockCluster(Path(name), settings=())
        try:
            cluster.start()
            brokers = [psutil.Process(cluster.pid(broker)) for broker in cluster.brokers]
            time.sleep(SETTLE_S)
            tell({"engine": engine, "three mock brokers": brokers}, seconds)
        finally:
            cluster.stop()


def tell(parts: dict[str, list[psutil.Process]], seconds: float) -> None:
    """Print each part's processor time per second, and its memory with shared pages counted once."""
    meters = {part: Meter([one.pid for one in processes]) for part, processes in parts.items()}
    time.sleep(seconds)
    for part, processes in parts.items():
        cores = meters[part].spent_s() / seconds
        memory = sum(process.memory_full_info().pss for process in processes if process.is_running())
        print(f"idle, {part}: {cores:.2f} cores, {memory / 2**20:.0f} MiB")
