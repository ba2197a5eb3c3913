"""The CPU and memory of the engine and three mock brokers when idle."""

import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.support.engine import running_engine
from tests.support.mock_cluster import MockCluster

SETTLE_S = 20.0
IDLE_S = 30.0


def main(*settings: str) -> None:
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name, running_engine(Path(name), *settings):
        engine = psutil.Process().children(recursive=True)
        cluster = MockCluster(Path(name), settings=())
        try:
            cluster.start()
            brokers = [psutil.Process(cluster.pid(broker)) for broker in cluster.brokers]
            time.sleep(SETTLE_S)
            tell({"engine": engine, "three mock brokers": brokers})
        finally:
            cluster.stop()


def tell(parts: dict[str, list[psutil.Process]]) -> None:
    """Print each part's processor time per second, and its memory with shared pages counted once."""
    before = {part: spent_s(processes) for part, processes in parts.items()}
    time.sleep(IDLE_S)
    for part, processes in parts.items():
        cores = (spent_s(processes) - before[part]) / IDLE_S
        memory = sum(process.memory_full_info().pss for process in processes if process.is_running())
        print(f"idle, {part}: {cores:.2f} cores, {memory / 2**20:.0f} MiB")


def spent_s(processes: list[psutil.Process]) -> float:
    """Add up processor time; a worker that has ended counts no more."""
    return sum(sum(process.cpu_times()[:2]) for process in processes if process.is_running())


if __name__ == "__main__":
    main(*sys.argv[1:])
