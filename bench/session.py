"""One run of a benchmark: the machine before and after it, and the report at the end."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.machine import machine
from bench.report import Figure, Report, table, write

OUT = Path("build/bench")


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
