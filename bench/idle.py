"""Measure CPU at rest: the engine with three mock brokers, and each controller with many brokers' heartbeats."""

import argparse
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from bench.drivers import DRIVERS
from bench.load import Load
from bench.machine import idle
from bench.options import add_cluster, loads
from bench.play import Make, rounds
from bench.report import Figure, measured
from tests.support.engine import running_engine
from tests.support.mock_cluster import MockCluster

SETTLE_S = 20.0
BROKERS = "100,1000"
PARTITIONS = "1000"
# Kafka's default.
HEARTBEAT_MS = 2_000


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="idle", description="Measure the CPU of controllers at rest.")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long to watch")
    parser.add_argument("--drivers", default="engine,peer", help=f"with commas, of {', '.join(DRIVERS)}")
    add_cluster(parser, PARTITIONS, BROKERS)
    options = parser.parse_args(given)
    makes = {name: DRIVERS[name] for name in options.drivers.split(",")}
    played = loads(options, heartbeat_ms=HEARTBEAT_MS, idle_s=options.seconds, steps=("create", "idle"))
    measured("idle", given, lambda: [*with_mock_brokers(options.seconds), *_at_rest(played, makes)])


def _at_rest(played: Sequence[Load], makes: Mapping[str, Make]) -> list[Figure]:
    return [figure for figure in rounds(played, makes, 1, SETTLE_S) if figure.step == "idle"]


def with_mock_brokers(seconds: float) -> list[Figure]:
    """Measure an engine and three mock brokers at rest, and print their memory."""
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
            for process in (*engine, *brokers):
                tell_memory(process)
            return [
                Figure(part, 0, "idle, three mock brokers", [idle([one.pid for one in processes], seconds)])
                for part, processes in (("engine", engine), ("mock brokers", brokers))
            ]
        finally:
            cluster.stop()


def tell_memory(process: psutil.Process) -> None:
    """Print a process's memory, with its share of what it has in common with others."""
    if process.is_running():
        print(f"  {process.pid} {process.name()}: {process.memory_full_info().pss / 2**20:.0f} MiB")
