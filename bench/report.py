"""Write the figures as a table and as JSON."""

import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from bench.load import Took
from bench.machine import Machine

_COLUMNS = (
    *("partitions", "brokers", "step", "driver", "s", "CPU s", "cores"),
    *("changes", "changes/s", "from session's end", "p99 s"),
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
        """Return the wall time that one of a hundred rounds exceeds; with fewer rounds, the longest."""
        return sorted(one.wall_s for one in self.rounds)[int(len(self.rounds) * 0.99)]

    @property
    def cpu_s(self) -> float:
        return statistics.median(one.cpu_s for one in self.rounds)

    @property
    def changes(self) -> int:
        return round(statistics.median(one.changes for one in self.rounds))

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
    machine = report.machine
    yield (
        f"`{report.command}`, {report.began}, on {machine.processor}, {machine.cores} cores, {machine.memory_gib} GiB, "
        f"Python {machine.python}. Load average {machine.load:.1f} before and {report.load_after:.1f} after the run; "
        f"reference loop {machine.reference_wall_s:.2f} s, of that {machine.reference_cpu_s:.2f} s CPU."
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
            f"| {'' if ends_s is None else f'{ends_s:.2f}'} | {figure.p99_s:.2f} |"
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
