"""Play a load on several drivers in alternating rounds."""

import tempfile
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path

from bench.load import Driver, Load, StepName, Took
from bench.report import Figure

# A pause before each step, in which the controller finishes what the step before left.
SETTLE_S = 2.0

Make = Callable[[Path, Load], Driver]


def rounds(loads: Sequence[Load], makes: Mapping[str, Make], count: int, settle_s: float = SETTLE_S) -> list[Figure]:
    """Play every load on every driver ``count`` times, each time on a new driver, and in another order.

    A round that fails is reported, and the next ones follow.
    """
    took: dict[tuple[str, int, str, int], list[Took]] = defaultdict(list)
    for load in loads:
        names = list(makes)
        for number in range(count):
            for name in [*names[number % len(names) :], *names[: number % len(names)]]:
                try:
                    for step, one in one_round(name, makes[name], load, settle_s):
                        took[name, load.partitions, step, load.brokers].append(one)
                except Exception:
                    # The figures of the other rounds are worth keeping.
                    print(f"  {_where(name, load)}: round {number + 1} failed", flush=True)
                    traceback.print_exc()
    return [Figure(*where, all_, brokers) for (*where, brokers), all_ in took.items()]


def one_round(name: str, make: Make, load: Load, settle_s: float = SETTLE_S) -> Iterator[tuple[str, Took]]:
    """Play a load once on a new driver. A return is also named after the step before it."""
    with tempfile.TemporaryDirectory(prefix="isrflow-bench-") as folder:
        driver = make(Path(folder), load)
        driver.start()
        try:
            steps = list(_played(load.steps, driver.passes_over))
            for before, step in zip(("", *steps), steps, strict=False):
                time.sleep(settle_s)
                shown = f"return after {before}" if step == "return" else step
                took = driver.play(step)
                print(f"  {_where(name, load)}: {shown}: {took.wall_s:.2f} s, {took.changes:,}", flush=True)
                yield shown, took
        finally:
            driver.stop()


def _played(steps: Iterable[StepName], passed_over: Set[StepName]) -> Iterator[StepName]:
    """Leave out steps that are passed over, and the return after one of them."""
    before = ""
    for step in steps:
        if step not in passed_over and not (step == "return" and before in passed_over):
            yield step
        before = step


def _where(name: str, load: Load) -> str:
    return f"{name}, {load.partitions:,} on {load.brokers}"
