"""Measure the time from an event on the bus to its decision on an idle engine, and where the time goes."""

import argparse
import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.buses import on_kafka
from bench.load import Took
from bench.machine import Meter
from bench.report import Figure, measured
from bus.interface import Bus
from conf.jars import fetch
from tests.support.engine import decided, encoded, running_engine
from tests.support.scrape import metrics_url, scrape

EVENTS = 100
WARM_UP_EVENTS = 10
# The limit on each bus. A busy machine measures fewer events in that time.
SECONDS_MAX = 120
PHASES = "isrflow_batch_phase_seconds_total"


def main(*given: str) -> None:
    """Measure on the embedded bus and, with ``--kafka``, also on one real Kafka node in the same run."""
    parser = argparse.ArgumentParser(prog="latency", description="Measure the time from an event to its decision.")
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--seconds", type=int, default=SECONDS_MAX, help="stop measuring after so long")
    parser.add_argument("--kafka", action="store_true", help="also on a bus of Kafka topics")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the engine")
    options = parser.parse_args(given)
    measured("latency", given, lambda: list(_figures(options)))


def _figures(options: argparse.Namespace) -> Iterator[Figure]:
    yield measure("embedded", options.events, options.seconds, *options.set)
    if options.kafka:
        fetch("kafka-broker")
        with tempfile.TemporaryDirectory(prefix="isrflow-bench-kafka-") as name, on_kafka(Path(name)) as url:
            yield measure("kafka", options.events, options.seconds, f"bus={url}", *options.set)


def measure(bus_name: str, events: int, seconds: int, *settings: str) -> Figure:
    """Publish events one by one, and print the time of a batch by phase. CPU includes the ticks between the events."""
    with (
        tempfile.TemporaryDirectory(prefix="isrflow-bench-") as name,
        running_engine(Path(name), "metrics.port=0", *settings) as bus,
    ):
        url = metrics_url(Path(name) / "engine.log")
        for _ in range(min(WARM_UP_EVENTS, events)):
            one_event_s(bus)
        before, meter = scrape(url), Meter([one.pid for one in psutil.Process().children()])
        took_s, until = [one_event_s(bus)], time.monotonic() + seconds
        while len(took_s) < events and time.monotonic() < until:
            took_s.append(one_event_s(bus))
        cpu_s = meter.spent_s() / len(took_s)
        tell_phases(before, scrape(url))
    if len(took_s) < events:
        print(f"  the time was up after {len(took_s)} of {events} events")
    took = [Took(wall_s=wall_s, cpu_s=cpu_s, changes=1) for wall_s in took_s]
    return Figure("engine", 0, f"event to decision, {bus_name} bus", took)


def one_event_s(bus: Bus) -> float:
    """Publish an event at a random moment between two ticks, and wait for its decision."""
    time.sleep(random.uniform(0.3, 0.8))
    started = time.monotonic()
    decided(bus, bus.publish([encoded("elect_leaders", election_type="preferred", partitions=None)]))
    return time.monotonic() - started


def tell_phases(before: dict[str, float], after: dict[str, float]) -> None:
    """Print how long a batch took on average, by Spark's own phases."""
    count = "isrflow_batch_duration_seconds_count"
    batches = after[count] - before[count]
    for name in sorted(after, key=lambda n: before.get(n, 0) - after[n]):
        if name.startswith(PHASES):
            each_ms = (after[name] - before.get(name, 0)) / batches * 1000
            print(f"  {name.removeprefix(PHASES):<30} {each_ms:6.0f} ms a batch")
