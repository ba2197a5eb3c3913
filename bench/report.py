"""The figures of a run, as a table and as JSON."""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec

from bench.load import Took
from bench.machine import Machine, machine

OUT = Path("build/bench")
_COLUMNS = (
    *("partitions", "brokers", "step", "driver", "s", "CPU s", "cores"),
    *("changes", "changes/s", "from session's end", "p99 s", "peak MiB"),
)


class Figure(msgspec.Struct, frozen=True):
    """One step of one driver at one size, in all rounds."""

    driver: str
    partitions: int
    step: str
    rounds: list[Took]
    # 0 if they do not matter.
    brokers: int = 0

    @property
    def wall_s(self) -> float:
        return statistics.median(one.wall_s for one in self.rounds)

    @property
    def p99_s(self) -> float:
        """The wall time that one of a hundred rounds exceeds; with fewer rounds, the longest."""
        return sorted(one.wall_s for one in self.rounds)[int(len(self.rounds) * 0.99)]

    @property
    def cpu_s(self) -> float:
        return statistics.median(one.cpu_s for one in self.rounds)

    @property
    def changes(self) -> int:
        return round(statistics.median(one.changes for one in self.rounds))

    @property
    def peak_mib(self) -> int | None:
        """The most memory that the process took, if it was measured."""
        return max((one.peak_mib for one in self.rounds if one.peak_mib is not None), default=None)

    @property
    def session_end_s(self) -> float | None:
        ends = [one.session_end_s for one in self.rounds if one.session_end_s is not None]
        return statistics.median(ends) if ends else None


class Report(msgspec.Struct, frozen=True):
    """A whole run."""

    began: str
    command: str
    machine: Machine
    # The one-minute load average at the run's end.
    load_after: float
    figures: list[Figure]


def table(report: Report) -> Iterator[str]:
    """Write a report as markdown."""
    here = report.machine
    yield (
        f"`{report.command}`, {report.began}, on {here.processor}, {here.cores} cores, {here.memory_gib} GiB, "
        f"Python {here.python}. Load average {here.load:.1f} before and {report.load_after:.1f} after the run; "
        f"reference loop {here.reference_wall_s:.2f} s, of that {here.reference_cpu_s:.2f} s CPU."
    )
    yield ""
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|" + "---|" * len(_COLUMNS)
    for figure in sorted(
        report.figures, key=lambda one: (one.partitions, one.brokers, order(report.figures, one.step))
    ):
        ends_s = figure.session_end_s
        yield (
            f"| {figure.partitions:,} | {figure.brokers or ''} | {figure.step} | {figure.driver} "
            f"| {figure.wall_s:.2f} | {figure.cpu_s:.2f} | {figure.cpu_s / max(figure.wall_s, 1e-9):.2f} "
            f"| {figure.changes:,} | {figure.changes / max(figure.wall_s, 1e-9):,.0f} "
            f"| {'' if ends_s is None else f'{ends_s:.2f}'} | {figure.p99_s:.2f} "
            f"| {'' if figure.peak_mib is None else f'{figure.peak_mib:,}'} |"
        )


def order(figures: Sequence[Figure], step: str) -> int:
    """Return the index of a step's first figure."""
    return next(place for place, figure in enumerate(figures) if figure.step == step)


def write(report: Report, folder: Path) -> Path:
    """Write a report's JSON and table into ``folder``, and return the JSON's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"bench-{report.began.replace(':', '').replace(' ', '-')}.json"
    path.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    path.with_suffix(".md").write_text("\n".join(table(report)) + "\n")
    return path


def measured(name: str, given: Sequence[str], measure: Callable[[], list[Figure]], out: Path = OUT) -> Report:
    """Measure, print the table, and write it with its JSON into ``out``."""
    began, here = time.strftime("%Y-%m-%d %H:%M"), machine()
    figures = measure()
    words = "make bench" if name == "all" else f"make bench-{name}"
    command = f'{words} ARGS="{" ".join(given)}"' if given else words
    report = Report(began, command, here, os.getloadavg()[0], figures)
    print("\n".join(table(report)))
    print(f"\nwritten to {write(report, out)}")
    return report
