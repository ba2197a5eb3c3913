"""Judge whether a series of samples grows: compare the last third of a run with the middle third."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tests.soak.samples import Sample


class Limit(NamedTuple):
    """By how much the last third may exceed the middle one: a number, and a share of the middle third's median.

    A run shorter than ``minutes_min`` is not judged, because these values rise and fall more slowly.
    """

    series: str
    absolute: float
    share: float
    minutes_min: float
    what: str


LIMITS = (
    Limit("driver_fds", 8, 0, 1.5, "file descriptors of the driver"),
    Limit("jvm_fds", 12, 0, 1.5, "file descriptors of the JVM"),
    Limit("worker_fds", 8, 0, 1.5, "file descriptors of Python workers"),
    Limit("threads", 12, 0, 1.5, "threads of all processes"),
    Limit("driver_mib", 4, 0.03, 10, "memory of the driver, MiB"),
    Limit("jvm_mib", 16, 0.05, 10, "memory of the JVM, MiB"),
    Limit("live_heap_mib", 4, 0.05, 10, "live heap of the JVM, MiB"),
    Limit("worker_mib", 8, 0.05, 10, "memory of Python workers, MiB"),
    Limit("checkpoint_mib", 1, 0.25, 10, "checkpoint, MiB"),
    Limit("checkpoint_files", 40, 0.25, 10, "files of the checkpoint"),
    Limit("bus_mib", 2, 0.1, 10, "bus file, MiB"),
    Limit("wal_mib", 2, 0.1, 10, "write-ahead log of the bus, MiB"),
    Limit("scrape_ms", 15, 0.5, 10, "time of a scrape, ms"),
    Limit("scrape_bytes", 2_000, 0.1, 1.5, "size of a scrape, bytes"),
)


class Finding(NamedTuple):
    """One series of a run; ``grew`` when its last third is above its limit."""

    limit: Limit
    middle: float
    last: float
    is_judged: bool

    @property
    def allowed(self) -> float:
        return self.middle + self.limit.absolute + self.middle * self.limit.share

    @property
    def grew(self) -> bool:
        return self.is_judged and self.last > self.allowed

    def __str__(self) -> str:
        verdict = "GREW" if self.grew else "flat" if self.is_judged else "not judged in so short a run"
        return f"{self.limit.what}: {self.middle:.1f} -> {self.last:.1f} (limit {self.allowed:.1f}): {verdict}"


def findings(samples: Sequence[Sample]) -> list[Finding]:
    """Judge every series of a run."""
    third = len(samples) // 3
    minutes = (samples[-1].at_s - samples[0].at_s) / 60
    return [_finding(limit, samples[third : 2 * third], samples[2 * third :], minutes) for limit in LIMITS]


def _finding(limit: Limit, middle: Sequence[Sample], last: Sequence[Sample], minutes: float) -> Finding:
    former, latter = ([float(getattr(sample, limit.series)) for sample in some] for some in (middle, last))
    return Finding(limit, median(former), median(latter), minutes >= limit.minutes_min)
