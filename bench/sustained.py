"""Measure how soon high watermarks follow log ends at a steady rate, and whether the engine keeps up.

The partitions are divided into slices. The brokers report all replicas of one slice at once, and then those of the
next, at the rate that was asked for. A delay is the time from the call that publishes a slice's reports to the
commit of the first tick after them, which moves the slice's high watermarks. The backlog is what was published and is
not committed. It rises and falls with each batch, so what counts is its lowest value in each third of the time.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.bus_driver import DECIDE_TIMEOUT_S, BusDriver
from bench.drivers import engine
from bench.events import Place, places_in, together
from bench.load import Load, Took
from bench.machine import Meter
from bench.options import add_cluster, loads
from bench.report import Figure, measured
from bus.clock import now_ms
from bus.embedded import EmbeddedBus
from bus.image import read_image
from bus.interface import Bus
from isrflow.engine_only import engine_kind_of

PARTITIONS = "200000"
RATE = 300_000
SECONDS = 30.0
WARM_UP_S = 5.0
# How long the reports of one slice take at the given rate.
SLICE_S = 0.25
THIRDS = 3
_POLL_S = 0.01
# Longer events are not decoded to see whether they are ticks, because that would take time from the engine.
_TICK_BYTES_MAX = 200
# Numbers that stand in prepared events for the log end and for the time, and occur nowhere else in them.
_END, _TIME = 999_999_999_999_991, 999_999_999_999_992


class Slice(NamedTuple):
    """Some partitions, and the events that report all their replicas."""

    places: Sequence[Place]
    events: Sequence[bytes]
    reports: int

    def at(self, end: int) -> list[bytes]:
        """Return the events that report ``end`` as the end of each log."""
        values = str(end).encode(), str(now_ms()).encode()
        return [raw.replace(b"%d" % _END, values[0]).replace(b"%d" % _TIME, values[1]) for raw in self.events]


class Sent(NamedTuple):
    """A published slice: its last event's seq, when it was published, and how many replicas it reports."""

    seq: int
    at_s: float
    reports: int


class Publisher(threading.Thread):
    """The thread that publishes slices, one after the other, ``rate`` reports a second."""

    def __init__(self, bus_path: Path, slices: Sequence[Slice], ends: list[int], rate: int, seconds: float) -> None:
        super().__init__(name="publisher", daemon=True)
        self.sent: list[Sent] = []
        # The longest time by which a publication was late.
        self.late_s = 0.0
        self.error: Exception | None = None
        self._bus_path = bus_path
        self._slices = slices
        # By slice: the log end that was last reported.
        self._ends = ends
        self._rate = rate
        self._seconds = seconds

    def run(self) -> None:
        bus = EmbeddedBus(self._bus_path)
        try:
            self._publish(bus)
        except Exception as error:
            self.error = error
        finally:
            bus.close()

    def _publish(self, bus: Bus) -> None:
        began_s, reports = time.monotonic(), 0
        while reports < self._rate * self._seconds:
            number = len(self.sent) % len(self._slices)
            some = self._slices[number]
            self._ends[number] += 1
            events = some.at(self._ends[number])
            due_s = began_s + reports / self._rate
            time.sleep(max(0.0, due_s - time.monotonic()))
            at_s = time.monotonic()
            self.late_s = max(self.late_s, at_s - due_s)
            self.sent.append(Sent(bus.publish(events), at_s, some.reports))
            reports += some.reports


class Followed(NamedTuple):
    """What was seen on the bus."""

    # Of each slice.
    delays_s: list[float]
    # The lowest backlog in each third.
    lows: list[int]
    # From the first publication to the last commit.
    wall_s: float


def main(*given: str) -> None:
    parser = argparse.ArgumentParser(prog="sustained", description="Report log ends at a steady rate.")
    add_cluster(parser, PARTITIONS)
    parser.add_argument("--rate", type=int, default=RATE, help="replicas that report in a second")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="how long they report")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of the engine")
    options = parser.parse_args(given)

    def measured_on(load: Load) -> list[Figure]:
        return measure(lambda folder: engine(folder, load, *options.set), load, options.rate, options.seconds)

    played = loads(options, steps=("create",))
    measured("sustained", given, lambda: [figure for load in played for figure in measured_on(load)])


def measure(make: Callable[[Path], BusDriver], load: Load, rate: int, seconds: float) -> list[Figure]:
    """Measure on a new engine, after a warm-up."""
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as folder:
        driver = make(Path(folder))
        driver.start()
        try:
            driver.play("create")
            slices = list(sliced(driver, load, rate))
            ends = [0] * len(slices)
            played(driver, slices, ends, rate, min(WARM_UP_S, seconds))
            meter = Meter(driver.pids)
            sent, followed = played(driver, slices, ends, rate, seconds)
            cpu_s = meter.spent_s()
            check(driver.bus, slices, ends)
        finally:
            driver.stop()
    name = f"log ends at {rate:,}/s"
    whole = Took(wall_s=followed.wall_s, cpu_s=cpu_s, changes=sum(one.reports for one in sent))
    delays = [Took(wall_s=delay_s, cpu_s=0.0, changes=1) for delay_s in followed.delays_s]
    figures = [
        Figure("engine", load.partitions, name, [whole], load.brokers),
        Figure("engine", load.partitions, f"{name}, report to watermark", delays, load.brokers),
    ]
    tell(figures[1], sent, followed, rate)
    return figures


def sliced(driver: BusDriver, load: Load, rate: int) -> Iterator[Slice]:
    """Divide all partitions into slices, and prepare the events of each."""
    places = list(places_in(read_image(driver.bus.image()).topics, load.partitions))
    size = max(1, min(len(places), round(rate * SLICE_S / load.replication_factor)))
    for first in range(0, len(places), size):
        some = places[first : first + size]
        reports = sum(len(held.replicas) for _, held in some)
        yield Slice(some, together(some, _END, driver.epochs, _prepared), reports)


def _prepared(kind: str, **fields: Any) -> bytes:
    return msgspec.json.encode({"kind": kind, "time_ms": _TIME, **fields})


def played(
    driver: BusDriver, slices: Sequence[Slice], ends: list[int], rate: int, seconds: float
) -> tuple[list[Sent], Followed]:
    """Publish slices for some seconds, and wait until all are committed."""
    publisher = Publisher(driver.bus.path, slices, ends, rate, seconds)
    publisher.start()
    try:
        followed = follow(driver.bus, publisher)
    finally:
        publisher.join(DECIDE_TIMEOUT_S)
    print(f"  {seconds:.0f} s: the latest publication was late by {publisher.late_s:.2f} s", flush=True)
    return publisher.sent, followed


def follow(bus: Bus, publisher: Publisher) -> Followed:
    """Watch commits until every published slice is committed."""
    began_s, through, tick, delays_s = time.monotonic(), bus.decided_seq(), 0, list[float]()
    backlogs: list[tuple[float, int]] = []
    while publisher.is_alive() or len(delays_s) < len(publisher.sent):
        decided, at_s = bus.decided_seq(), time.monotonic()
        if at_s > began_s + DECIDE_TIMEOUT_S:
            raise TimeoutError(f"{len(delays_s)} of {len(publisher.sent)} slices are committed")
        ticks = [
            one.seq
            for one in bus.read(through, decided)
            if len(one.raw) < _TICK_BYTES_MAX and engine_kind_of(one.raw) == "tick"
        ]
        through, tick = decided, max(ticks, default=tick)
        sent = publisher.sent[len(delays_s) :]
        delays_s += [at_s - one.at_s for one in sent if one.seq < tick]
        if publisher.is_alive():
            backlogs.append((at_s, sum(one.reports for one in sent if one.seq >= tick)))
        time.sleep(_POLL_S)
    if publisher.error is not None:
        raise publisher.error
    return Followed(delays_s, lows(backlogs), time.monotonic() - began_s)


def lows(backlogs: Sequence[tuple[float, int]]) -> list[int]:
    """Return the lowest backlog in each third of the time."""
    began_s, ended_s = backlogs[0][0], backlogs[-1][0]
    third_s = (ended_s - began_s) / THIRDS
    return [
        min((backlog for at_s, backlog in backlogs if 0 <= at_s - began_s - nth * third_s <= third_s), default=0)
        for nth in range(THIRDS)
    ]


def grew(followed: Followed, rate: int) -> bool:
    """Return whether the lowest backlog rose by more than the reports of a second."""
    return followed.lows[-1] - followed.lows[0] > rate


def check(bus: Bus, slices: Sequence[Slice], ends: Sequence[int]) -> None:
    """Check that each high watermark is where its partition's logs end."""
    expected = {
        (topic, held.partition): end for one, end in zip(slices, ends, strict=True) for topic, held in one.places
    }
    held = {
        (topic.topic, partition.partition): partition.high_watermark
        for topic in read_image(bus.image()).topics
        for partition in topic.partitions
    }
    behind = [place for place, end in expected.items() if held[place] != end]
    if behind:
        raise AssertionError(f"{len(behind)} of {len(expected)} high watermarks did not move")


def tell(figure: Figure, sent: Sequence[Sent], followed: Followed, rate: int) -> None:
    """Print the delays, the rate of publications, and the backlog."""
    longest_s = max(followed.delays_s)
    published_s = max(sent[-1].at_s - sent[0].at_s, 1e-9)
    reached = sum(one.reports for one in sent[:-1]) / published_s
    print(f"  report to watermark: p50 {figure.wall_s:.2f} s, p99 {figure.p99_s:.2f} s, max {longest_s:.2f} s")
    print(f"  published {reached:,.0f} of {rate:,} reports a second")
    shown = ", ".join(f"{low:,}" for low in followed.lows)
    print(f"  lowest backlog in each third: {shown} reports: it {'grew' if grew(followed, rate) else 'did not grow'}")
